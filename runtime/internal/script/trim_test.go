package script_test

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/storetest"
	"github.com/rategen/rategen/runtime/rule"
)

// TestTrim keeps a limit busy for so long that its key never expires, and
// wants what has left the window to be removed.
func TestTrim(t *testing.T) {
	t.Parallel()
	only := func(r *runtime.Rule) bool { return r.Algorithm == runtime.SlidingLog || isCounter(r) } // others are a number or two
	eachLog(t, storetest.WaysOf(time.Second, 10), only, func(t *testing.T, log *log, rule *runtime.Rule) {
		for i := range 50 {
			if r := log.decide(take, rule, 3); !r.Allowed {
				t.Fatalf("got %+v", r)
			}
			elements, most := int64(0), int64(10)
			if isCounter(rule) {
				elements = log.client.StrLen(t.Context(), log.key).Val()/7 - 6
			} else if rule.Storage == runtime.StoragePacked {
				elements, most = log.stored(rule), 14 // a few may stay
			} else {
				elements = log.stored(rule)
			}
			if elements < 1 || elements > most {
				t.Fatalf("%d elements after %d calls, want at most %d", elements, i+1, most)
			}
			if i < 25 {
				log.subject.Advance(600 * time.Millisecond) // some have left
			} else {
				log.subject.Advance(time.Second) // all have, but the key is still there
			}
		}
	})
}

// TestTrimInStretch lets a full window leave while the expiry of the key need
// not be set anew, and wants what is kept of it to be bounded.
func TestTrimInStretch(t *testing.T) {
	t.Parallel()
	rule := storetest.WaysOf(time.Second, 10)["log zset"]
	log := newLog(t, redistest.Start(t).Client(t))
	for _, step := range []struct {
		after      time.Duration
		cost, most int64 // most events that there may be
		left       int64
	}{{10, 9, 9, 1}, {990, 1, 10, 0}, {10, 4, 15, 5}, {-5, 1, 15, 4}, {6, 4, 10, 0}} {
		log.subject.Advance(step.after * time.Millisecond)
		log.take(rule, step.cost, step.left)
		between(t, fmt.Sprintf("events %d ms later", step.after), log.stored(rule), 1, step.most)
	}
}

// TestManyValues charges a store what a [runtime.Limiter] would refuse, and wants
// it to be written in as many pieces as a script needs.
func TestManyValues(t *testing.T) {
	t.Parallel()
	eachLog(t, logRules(time.Hour, 20_000), nil, func(t *testing.T, log *log, rule *runtime.Rule) {
		log.take(rule, 1, 19_999)
		log.take(rule, 10_000, 9_999)
		log.take(rule, 9_999, 0)
	})
}

// livesAWindow wants a key to live for about the window of its rule.
func livesAWindow(t *testing.T, log *log, rule *runtime.Rule) {
	t.Helper()
	between(t, "expires in", log.lives(), rule.Window-rule.Resolution, rule.Window+time.Second)
}

// TestIdleLog has a call find a log or a counter of which everything has left, and wants it to
// be dropped as a whole and no event of it to be looked at.
func TestIdleLog(t *testing.T) {
	t.Parallel()
	rules, counters := logRules(time.Hour, 1_000_000), storetest.WaysOf(time.Second, 100)
	maps.DeleteFunc(counters, func(_ string, r *runtime.Rule) bool { return !isCounter(r) })
	maps.Copy(rules, counters)
	eachLog(t, rules, nil, func(t *testing.T, log *log, rule *runtime.Rule) {
		if isCounter(rule) {
			log.decideEach(rule, 50)
			log.subject.Advance(log.decide(take, rule, 1).ResetAfter) // when Redis keeps the key for a little longer
		} else {
			store(t, log.client, log.key, rule, log.subject.Now(), 80_000)
			log.subject.Advance(rule.Window + 900*time.Millisecond)
		}
		commands := log.commands(func() { log.take(rule, 3, rule.Max-3) })
		drops := "set"
		switch {
		case isCounter(rule):
			equal(t, "bytes, of one bucket", log.client.StrLen(t.Context(), log.key).Val(), 57)
		case rule.Storage != runtime.StoragePacked:
			drops = "unlink"
			fallthrough
		default:
			equal(t, "events are stored", log.stored(rule), 3)
			livesAWindow(t, log, rule)
		}
		if commands[drops] != 1 || commands["del"]+commands["zremrangebyrank"]+commands["zrem"] != 0 {
			t.Errorf("commands %v, want one %s, and nothing else that removes", commands, drops)
		}
	})
}

// TestIdleSlices has a call find that everything has left a log in slices which
// are not much shorter than the window, and wants the new log to expire.
func TestIdleSlices(t *testing.T) {
	t.Parallel()
	eachLog(t, logRules(100*time.Millisecond, 10), nil, func(t *testing.T, log *log, rule *runtime.Rule) {
		if rule.Resolution > 0 {
			rule.Resolution = 40 * time.Millisecond
		}
		// To where a slice begins, and the stretch that one expiry holds for.
		const both = 200_000
		log.subject.Advance(time.Duration(both-log.subject.Now()%both) * time.Microsecond)
		log.take(rule, 1, 9)
		log.subject.Advance(rule.Window)
		log.take(rule, 1, 9)
		livesAWindow(t, log, rule)
	})
}

// store stores events, a microsecond after each other, as the script does.
func store(t *testing.T, client *redis.Client, key string, rule *runtime.Rule, begin int64, events int) {
	t.Helper()
	all := times(begin, events)
	if rule.Storage == runtime.StoragePacked {
		ok(t, client.Set(t.Context(), key, packedLog(all, events/10), 0).Err())
		return
	}
	for piece := range slices.Chunk(all, 2000) {
		args := []any{"ZADD", key}
		for _, at := range piece {
			args = append(args, at, at)
		}
		// One by one, or a busy Redis has no time to read before the client gives up.
		ok(t, client.Do(t.Context(), args...).Err())
	}
}

// TestLooksOfLongLog counts what a script looks at in a long log of which a part
// has left: a number of events that grows as the logarithm does.
func TestLooksOfLongLog(t *testing.T) {
	t.Parallel()
	const events = 20_000
	eachLog(t, logRules(time.Hour, 1_000_000), nil, func(t *testing.T, log *log, rule *runtime.Rule) {
		for _, gone := range []int64{1, 5, 1000, events / 2, events - 1} {
			log.client.Del(t.Context(), log.key)
			store(t, log.client, log.key, rule, log.subject.Now(), events)
			log.subject.Advance(rule.Window + time.Duration(gone-1)*time.Microsecond)
			commands := log.commands(func() {
				c := must(t, log.subject.Store, take, single(rule, log.key, 1))
				equal(t, fmt.Sprintf("%d have left: remaining", gone), c.Remaining, rule.Max-1-(events-gone))
			})
			looks := 0
			for name, n := range commands {
				if !strings.HasPrefix(name, "eval") && !strings.HasPrefix(name, "config") {
					looks += n
				}
			}
			if most := 10 + 2*bits.Len(uint(events)); looks > most {
				t.Errorf("%d have left: commands %v, want at most %d", gone, commands, most)
			}
		}
	})
}

// TestTrimInPieces lets most of a long log leave at once, and wants every charge to remove a
// bounded piece of that, more than it adds, until it is gone: while nothing of it counts.
func TestTrimInPieces(t *testing.T) {
	t.Parallel()
	const max, gone, window = 40_000, 25_000, time.Second
	const trims = 128                                                                // events more than it adds that a charge removes at most
	sets := func(r *runtime.Rule) bool { return r.Storage != runtime.StoragePacked } // packed ones overwrite what has left
	eachLog(t, logRules(window, max), sets, func(t *testing.T, log *log, declared *runtime.Rule) {
		longer := *declared
		longer.Window = time.Hour // counts what is stored
		log.fill(declared, gone)
		log.subject.Advance(window / 2)
		log.fill(declared, 3)
		log.subject.Advance(window / 2)
		inside, before := int64(3), log.stored(declared)
		for cost := int64(1); before > inside; cost = cost*7%rule.MaxLogCost + 1 {
			if max-inside < cost {
				t.Fatalf("%d events have not gone when the log is full", before-inside)
			}
			inside += cost
			log.take(declared, cost, max-inside)
			after := log.stored(declared)
			if removed := before + cost - after; removed > cost+trims || removed <= cost && after > inside && cost > 16 {
				t.Fatalf("cost %d: %d of %d events were removed, %d are stored", cost, removed, before, after)
			}
			log.peek(&longer, rule.MaxLogCost)
			before = after
		}
	})
}

// TestPeakOfSmallCalls has a limit that was used up once be used a little, and
// wants what is stored of it to become little too.
func TestPeakOfSmallCalls(t *testing.T) {
	t.Parallel()
	max, calls := effort.Choose[int64](1_500, 10_000), effort.Choose(260, 1700)
	eachLog(t, logRules(time.Second, max), nil, func(t *testing.T, log *log, rule *runtime.Rule) {
		rule.Resolution = min(rule.Resolution, time.Millisecond)
		for _, gap := range effort.Choose([]time.Duration{17 * time.Microsecond}, []time.Duration{time.Millisecond, 17 * time.Microsecond, 0}) {
			log.fill(rule, max-1)
			log.subject.Advance(rule.Window / 2)
			log.fill(rule, 1)
			log.subject.Advance(rule.Window / 2)
			inside := int64(0)
			for range calls {
				log.subject.Advance(gap)
				inside = rule.Max - log.decide(take, rule, 1).Remaining
			}
			between(t, fmt.Sprintf("%v apart: events are stored", gap), log.stored(rule), inside, inside+200)
			log.subject.Advance(2 * time.Second) // all leave
		}
	})
}
