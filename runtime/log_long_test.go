package runtime_test

import (
	"math/bits"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// TestManyValues charges a store what a [runtime.Limiter] would refuse, and wants
// it to be written in as many pieces as a script needs.
func TestManyValues(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	for name, rule := range logRules(time.Hour, 20_000) {
		t.Run(name, func(t *testing.T) {
			log := newLog(t, client, rule)
			log.take(rule, 1, 19_999)
			log.take(rule, 10_000, 9_999)
			log.take(rule, 9_999, 0)
		})
	}
}

// TestIdleLog has a call find a log of which everything has left, and wants it to
// be dropped as a whole and no event of it to be looked at.
func TestIdleLog(t *testing.T) {
	t.Parallel()
	events := effort.Choose(80_000, 800_000)
	client := redistest.Start(t).Client(t)
	for name, rule := range logRules(time.Hour, 1_000_000) {
		t.Run(name, func(t *testing.T) {
			log := newLog(t, client, rule)
			store(t, client, log.key, rule, log.subject.Now(), events)
			log.subject.Advance(rule.Window + 900*time.Millisecond)
			commands := log.commands(func() { log.take(rule, 3, rule.Max-3) })
			if n := log.stored(rule); n != 3 {
				t.Errorf("%d events are stored, want 3", n)
			}
			if packed := rule.Storage == runtime.StoragePacked; packed && commands["set"] != 1 || !packed && commands["unlink"] != 1 || commands["del"]+commands["ltrim"]+commands["lrem"]+commands["zremrangebyrank"]+commands["zrem"] != 0 {
				t.Errorf("commands %v, want one UNLINK, or SET, and nothing else that removes", commands)
			}
			lives := expireTime(t.Context(), client, log.key) - time.Duration(log.subject.Now())*time.Microsecond
			if lives < rule.Window-rule.Resolution || lives > rule.Window+time.Second {
				t.Errorf("expires in %v, want about %v", lives, rule.Window)
			}
		})
	}
}

// TestIdleSlices has a call find that everything has left a log in slices which
// are not much shorter than the window, and wants the new log to expire.
func TestIdleSlices(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	for name, rule := range logRules(100*time.Millisecond, 10) {
		t.Run(name, func(t *testing.T) {
			log := newLog(t, client, rule)
			if rule.Resolution > 0 {
				rule.Resolution = 40 * time.Millisecond
			}
			// To where a slice begins, and the stretch that one expiry holds for.
			const both = 200_000
			log.subject.Advance(time.Duration(both-log.subject.Now()%both) * time.Microsecond)
			log.take(rule, 1, 9)
			log.subject.Advance(rule.Window)
			log.take(rule, 1, 9)
			lives := expireTime(t.Context(), client, log.key) - time.Duration(log.subject.Now())*time.Microsecond
			if lives < rule.Window-rule.Resolution || lives > rule.Window+time.Second {
				t.Errorf("expires in %v, want about %v", lives, rule.Window)
			}
		})
	}
}

// store stores events, a microsecond after each other, as the script does.
func store(t *testing.T, client *redis.Client, key string, rule *runtime.Rule, begin int64, events int) {
	t.Helper()
	if rule.Storage == runtime.StoragePacked {
		times := make([]int64, events)
		for i := range times {
			times[i] = begin + int64(i)
		}
		if err := client.Set(t.Context(), key, packedLog(times, events/10), 0).Err(); err != nil {
			t.Fatal(err)
		}
		return
	}
	const piece = 2000
	for i := 0; i < events; i += piece {
		args := make([]any, 0, 2*piece+2)
		args = append(args, "ZADD", key)
		for j := range int64(piece) {
			at := strconv.FormatInt(begin+int64(i)+j, 10)
			args = append(args, at, at)
		}
		// One by one, or a busy Redis has no time to read before the client gives up.
		if err := client.Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLooksOfLongLog counts what a script looks at in a long log of which a part
// has left: a number of events that grows as the logarithm does.
func TestLooksOfLongLog(t *testing.T) {
	t.Parallel()
	events := effort.Choose(20_000, 200_000)
	client := redistest.Start(t).Client(t)
	for name, rule := range logRules(time.Hour, 1_000_000) {
		t.Run(name, func(t *testing.T) {
			for _, gone := range []int64{1, 5, 1000, int64(events) / 2, int64(events) - 1} {
				log := newLog(t, client, rule)
				client.Del(t.Context(), log.key)
				store(t, client, log.key, rule, log.subject.Now(), events)
				log.subject.Advance(rule.Window + time.Duration(gone-1)*time.Microsecond)
				commands := log.commands(func() {
					calls := single(rule, log.key, 1)

					must(t, log.subject.Store, take, calls)
					if left := rule.Max - 1 - (int64(events) - gone); calls[0].Charges[0].Remaining != left {
						t.Errorf("%d have left: got %+v, want %d left", gone, calls[0].Charges[0].Result, left)
					}
				})
				all := 0
				for name, n := range commands {
					if !strings.HasPrefix(name, "eval") && !strings.HasPrefix(name, "config") {
						all += n
					}
				}
				if most := 10 + 2*bits.Len(uint(events)); all > most {
					t.Errorf("%d have left: commands %v, want at most %d", gone, commands, most)
				}
			}
		})
	}
}

// TestRefundOfLongLog gives back charges at every place of a log that is so long
// that the script searches for them, also such as there are not any more.
func TestRefundOfLongLog(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	for name, rule := range logRules(time.Hour, 10_000) {
		if rule.Resolution > 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			log := newLog(t, client, rule)
			left := rule.Max
			times := []int64{log.subject.Now() - 1}
			for range 40 {
				left -= 100
				times = append(times, log.take(rule, 100, left).At)
				log.subject.Advance(time.Microsecond)
			}
			times = append(times, log.subject.Now()+1)
			for i, at := range times {
				log.refund(rule, 30, at)
				if i > 0 && i < len(times)-1 {
					left += 30
				}
				if r := log.peek(rule, 1); r.Remaining != left {
					t.Fatalf("charge %d: %d left, want %d", i, r.Remaining, left)
				}
			}
			// What is left of each, and more than there is.
			for _, i := range []int{1, 20, 40, 3, 38} {
				log.refund(rule, 100, times[i])
				if left += 70; log.peek(rule, 1).Remaining != left {
					t.Fatalf("the rest of charge %d: %d left, want %d", i, log.peek(rule, 1).Remaining, left)
				}
				log.refund(rule, 100, times[i])
			}
			// One after the other, as they leave.
			log.subject.Advance(rule.Window - time.Duration(log.subject.Now()-times[2])*time.Microsecond)
			for range 40 {
				log.peek(rule, 500)
				log.subject.Advance(time.Microsecond)
			}
			if left := log.peek(rule, 1).Remaining; left != rule.Max {
				t.Errorf("%d left when all have left", left)
			}
		})
	}
}
