package script_test

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/redisclock"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/documents"
	"github.com/rategen/rategen/runtime/internal/storetest"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

func packedRule(max int64) *runtime.Rule {
	return &runtime.Rule{Name: "packed", Window: time.Second, Max: max, Storage: runtime.StoragePacked}
}

// TestPackedRead has calls find a log of 10,000 events, and wants no more than a
// little of it to be read and written, wherever in the ring its edges are, whether
// the call is admitted or refused.
func TestPackedRead(t *testing.T) {
	t.Parallel()
	const events, most = 10_000, 700 // bytes; those of the log are 70,000
	server := redistest.Start(t)
	client := server.Client(t)
	r := packedRule(events + 100)
	r.Window = time.Hour
	ranges, whole := regexp.MustCompile(`(?i)"getrange" "[^"]*" "(\d+)" "(\d+)"`), regexp.MustCompile(`(?i)"(get|mget|set)"`)
	for _, spare := range []int{400, 1000, 4000} {
		log := newLog(t, client)
		client.Set(t.Context(), log.key, packedLog(times(log.subject.Now(), events), spare), 0)
		log.subject.Advance(r.Window - time.Microsecond) // none has left
		for i, cost := range []int64{1, 8, 1, 99, rule.MaxLogCost, 1, 1, 1} {
			stop := monitor(t, server)
			must(t, log.subject.Store, take, single(r, log.key, cost))
			read := 0
			for _, line := range stop() {
				if !strings.Contains(line, " lua] ") || strings.Contains(line, redisclock.Key) {
					continue
				}
				if m := ranges.FindStringSubmatch(line); m != nil {
					from, _ := strconv.Atoi(m[1])
					upto, _ := strconv.Atoi(m[2])
					read += upto - from + 1
				} else if whole.MatchString(line) {
					t.Errorf("%d spare, call %d of cost %d: %.100s", spare, i, cost, line)
				}
			}
			if read == 0 || read > most {
				t.Errorf("%d spare, call %d of cost %d: %d bytes were read, want at most %d", spare, i, cost, read, most)
			}
			log.subject.Advance(5 * time.Microsecond)
		}
	}
}

// times returns moments that are a microsecond apart.
func times(begin int64, n int) []int64 {
	all := make([]int64, n)
	for i := range all {
		all[i] = begin + int64(i)
	}
	return all
}

// TestPackedEmpty gives back all of a log, and wants its key to be gone.
func TestPackedEmpty(t *testing.T) {
	client := ownRedis(t)
	store := newStore(client)
	for _, block := range []time.Duration{0, time.Second} {
		for _, n := range []int64{1, 20, 100} {
			rule := packedRule(1000)
			rule.Block = block
			c := must(t, store, take, single(rule, documents.Prefix(t), n))
			settledCharge(t, store, c) // at 0
			if value, err := client.Get(t.Context(), documents.Prefix(t)).Bytes(); !errors.Is(err, redis.Nil) || !c.Allowed {
				t.Errorf("%d events, block %v: got %+v; the key holds %x, %v", n, block, c.Result, value, err)
			}
		}
	}
}

// TestPackedShrinks has a log become small again after a peak, and wants its memory
// back while it is used all the time.
func TestPackedShrinks(t *testing.T) {
	client := ownRedis(t)
	log := newLog(t, client)
	rule := packedRule(10_500)
	bytes := func() int64 { return client.StrLen(t.Context(), log.key).Val() }
	log.fill(rule, 2_000)
	between(t, "bytes for 2,000 events", bytes(), 14_000, 2_000*7*9/8+700)
	log.fill(rule, 8_000)
	between(t, "bytes for 10,000 events", bytes(), 70_000, 85_000)
	for range effort.Choose(300, 3000) {
		log.subject.Advance(10 * time.Millisecond)
		log.decide(take, rule, 1)
		inside, stored := rule.Max-log.peek(rule, 1).Remaining, log.stored(rule)
		if stored != inside {
			t.Fatalf("%d events are stored, and %d in the window", stored, inside)
		}
		if n := bytes(); n > max(4*7*inside+500, 76_000) || inside < 4000 && n > 4*7*inside+500 {
			t.Fatalf("%d bytes for %d events", n, inside)
		}
	}
}

// TestPackedRefused has a server refuse what makes a log a very long one, and wants the
// log to be as it was, or longer by what was charged.
func TestPackedRefused(t *testing.T) {
	t.Parallel()
	for name, refuse := range map[string]func(context.Context, *redis.Client) error{
		"longer than a text may be": func(ctx context.Context, client *redis.Client) error {
			return client.ConfigSet(ctx, "proto-max-bulk-len", "1048576").Err()
		},
		"no expiry": func(ctx context.Context, client *redis.Client) error {
			return client.Do(ctx, "ACL", "SETUSER", "default", "-pexpire", "-pexpireat").Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := redistest.Start(t).Client(t)
			r := packedRule(200_000) // 1.4 MB
			r.Window = 1000 * time.Hour
			log := newLog(t, client)
			log.fill(r, 16_500)
			ok(t, refuse(t.Context(), client))
			charged := int64(16_500)
			for range 12 { // there are no slots for as many
				if _, err := try(log.subject.Store, take, single(r, log.key, rule.MaxLogCost)); err == nil {
					charged += rule.MaxLogCost
				}
				used := r.Max - must(t, log.subject.Store, peek, single(r, log.key, 1)).Remaining
				if used != charged || redisclock.ExpireTime(t.Context(), client, log.key) <= 0 {
					t.Fatalf("%d events are counted, want %d; the log expires at %v", used, charged, redisclock.ExpireTime(t.Context(), client, log.key))
				}
			}
			if name == "longer than a text may be" && charged != 16_500+12*rule.MaxLogCost {
				t.Errorf("%d events were charged", charged)
			}
		})
	}
}

// TestPackedBroken damages logs, and wants an error that names it and no change.
func TestPackedBroken(t *testing.T) {
	client := ownRedis(t)
	subject := injected(t, client, nil)
	now := subject.Now()
	long, short := packedLog(times(now-500, 200), 40), packedLog(times(now-10, 10), -1)
	changed := func(value []byte, at int, to byte) []byte {
		value = slices.Clone(value)
		value[at] = to
		return value
	}
	key := documents.Prefix(t)
	for name, value := range map[string][]byte{
		"long, cut in the slots":  long[:packedSlots+10], // which a call of high cost looks at
		"short by a byte":         short[:len(short)-1],
		"longer by a byte":        append(slices.Clone(short), 1),
		"of another kind":         changed(short, 0, 2),
		"text":                    []byte("1234567890123456 0123456"),
		"long, cut in the header": long[:100],
		"starts beyond the slots": changed(long, 12, 1),
		"more than there are":     changed(long, 16, 1),
		"none in front":           changed(long, 20, 0),
		"too many in front":       changed(long, 20, 9),
		"none behind":             changed(long, 21, 0),
		"too many behind":         changed(long, 21, 200),
	} {
		for max, cost := range map[int64]int64{5: 5, 1000: 900} {
			if max == 5 && strings.HasPrefix(name, "long, cut in the slots") {
				continue
			}
			client.Set(t.Context(), key, value, time.Hour)
			for _, do := range []storetest.Operation{peek, take} {
				if c, err := try(subject.Store, do, single(packedRule(max), key, cost)); err == nil || runtime.ClassOf(err) != observe.ClassWrongType {
					t.Errorf("%s, max %d: got %+v, %v", name, max, c.Result, err)
				}
				if got, _ := client.Get(t.Context(), key).Bytes(); !bytes.Equal(got, value) {
					t.Errorf("%s, max %d: the value was changed", name, max)
				}
			}
		}
	}
}

// TestPackedEdges lets the events of a log leave one after the other, and in steps,
// from every form that it may have, and wants each decision to be the one in memory;
// and it charges a log until it has become larger several times.
func TestPackedEdges(t *testing.T) {
	client := ownRedis(t)
	for _, events := range effort.Choose([]int64{20, 60}, []int64{19, 20, 21, 60, 130}) {
		for _, step := range []int64{1, 3, 9, 50} {
			log := newLog(t, client)
			few, many := packedRule(60), packedRule(events+70)
			begin := log.subject.Now()
			if events <= few.Max {
				log.decideEach(few, events) // a log that is not long though it might be by now
			} else {
				log.decideEach(many, events)
			}
			log.subject.Advance(many.Window - time.Duration(log.subject.Now()-begin)*time.Microsecond)
			for left := int64(0); left < events+step; left += step {
				for _, cost := range []int64{1, 5, 12, 30, 55, 80, many.Max - 5, many.Max} {
					log.peek(many, min(cost, many.Max))
				}
				if left%2 == 0 {
					log.decide(take, many, 1+left%11)
				}
				log.subject.Advance(time.Duration(step) * time.Microsecond)
			}
			client.Del(t.Context(), log.key)
		}
	}
}

// decideEach charges n events, a microsecond after each other.
func (l *log) decideEach(rule *runtime.Rule, n int64) {
	l.Helper()
	for range n {
		l.decide(take, rule, 1)
		l.subject.Advance(time.Microsecond)
	}
}
