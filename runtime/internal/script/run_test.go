package script_test

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/documents"
	"github.com/rategen/rategen/runtime/internal/storetest"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rawstore"
	"github.com/rategen/rategen/runtime/rule"
)

// TestRuns has one trip decide calls of which several in a row share their
// terms, which the script is told once: each must be decided by its own, and
// what is wrong with one must not touch those after it.
func TestRuns(t *testing.T) {
	client := ownRedis(t)
	store := newStore(client)
	for name, rule := range storetest.WaysOf(time.Hour, 5) {
		t.Run(name, func(t *testing.T) {
			prefix := documents.Prefix(t)
			shorter := *rule
			shorter.Window, shorter.Max = time.Minute, 3
			one := func(rule *runtime.Rule, key string, cost int64) rawstore.Call {
				return single(rule, prefix+key, cost)[0]
			}
			client.SAdd(t.Context(), prefix+"foreign", "somebody else's")
			calls := []rawstore.Call{
				one(rule, "a", 1), one(rule, "b", 1), one(rule, "foreign", 1), one(rule, "c", 1), one(rule, "a", 1),
				one(&shorter, "d", 1), one(&shorter, "e", 1), one(&shorter, "e", 2),
				{Charges: []rawstore.Charge{chargeOf(rule, prefix+"f", 1), chargeOf(&shorter, prefix+"g", 1)}},
				one(&shorter, "g", 1), one(rule, "f", 1), one(&shorter, "foreign", 1), one(&shorter, "h", 1),
			}
			left := []int64{4, 4, -1, 4, 3, 2, 2, 0, 4, 1, 3, -1, 2}
			ok(t, rawstore.Wrap(store).Take(t.Context(), calls))
			for i := range calls {
				r := &calls[i].Charges[0].Result
				if left[i] < 0 {
					if calls[i].Err == nil || !strings.Contains(calls[i].Err.Error(), "WRONGTYPE") {
						t.Errorf("call %d: got %+v, %v, want WRONGTYPE", i, r, calls[i].Err)
					}
				} else if calls[i].Err != nil || !r.Allowed || r.Remaining != left[i] || r.At == 0 {
					t.Errorf("call %d: got %+v, %v, want %d left", i, r, calls[i].Err, left[i])
				}
			}
			if isBucket(rule) {
				return // how long it lives depends on its level
			}
			for key, longest := range map[string]time.Duration{"b": time.Hour, "d": time.Minute} {
				longest += longest/7 + time.Second // of a bucket too
				between(t, key+": expires in", client.PTTL(t.Context(), prefix+key).Val(), longest/2, longest)
			}
		})
	}
}

// TestLongScript has a script run for longer than the window, as it may on a
// machine that stalls: what the first calls of a trip charged must not have
// expired when the later ones are decided, which are at the same time.
func TestLongScript(t *testing.T) {
	client := ownRedis(t)
	// The time has to pass after the clock was read.
	slow := func(text string) string {
		const mark = "-- How many milliseconds"
		if !strings.Contains(text, mark) {
			t.Error("the script has changed: nothing would be slow")
		}
		return strings.Replace(text, mark, "for i = 1, 8000000 do end\n"+mark, 1)
	}
	store := newStore(client, changing(slow))
	for name, rule := range storetest.WaysOf(2*time.Millisecond, 5) {
		rule.Resolution = min(rule.Resolution, time.Millisecond) // not above the window
		calls := make([]rawstore.Call, 60)
		for i := range calls {
			calls[i] = single(rule, "long:"+name, 1)[0]
		}
		must(t, store, take, calls)
		for i := range calls { // which are at one time
			if r := calls[i].Charges[0].Result; r.Allowed != (i < int(rule.Max)) {
				t.Errorf("%s, call %d: %+v", name, i, r)
			}
		}
	}
}

// TestBucketRounding fills a bucket to a level so high that what is left for a charge is
// rounded up, so that the charge fits, while the room for it, rounded down, is one less.
func TestBucketRounding(t *testing.T) {
	client := ownRedis(t)
	store := newStore(client)
	const most, unit = rule.MaxCount, 1_000_000
	cost := int64(1)
	for int64(float64((most-cost)*unit)) <= (most-cost)*unit {
		cost++
	}
	level := int64(float64((most - cost) * unit))
	declared := &runtime.Rule{Name: "r", Window: time.Hour, Max: most, Algorithm: runtime.TokenBucket}
	now, err := client.Time(t.Context()).Result()
	ok(t, err)
	// The level as it is when the charge is decided: time does not pass before
	// this moment in the future.
	at := now.Add(time.Minute).UnixMicro()
	ok(t, client.Set(t.Context(), "rounding", packedBucket(at, level), time.Hour).Err())
	if r := must(t, store, take, single(declared, "rounding", cost)); !r.Allowed || r.Remaining != 0 || r.RetryAfter != 0 {
		t.Errorf("got %+v, want it admitted with nothing left", r)
	}
}

// packedBucket returns a bucket that has a level at a time, in bytes as in bucket.lua.
func packedBucket(at, level int64) []byte {
	value := make([]byte, 8, 30)
	value[0] = 3
	for range 2 { // until when the key lives, and the time
		value = append(value, binary.BigEndian.AppendUint64(nil, uint64(at))[1:]...)
	}
	return binary.BigEndian.AppendUint64(value, uint64(level))
}

// TestKeysInRow has a run of calls on keys that have been charged before, some
// of them more than once: what is read of all at once must be each one's own,
// and must not be told again once it has changed. All is given back in a row, too.
func TestKeysInRow(t *testing.T) {
	client := ownRedis(t)
	store := newStore(client)
	for name, rule := range storetest.WaysOf(time.Hour, 50) {
		t.Run(name, func(t *testing.T) {
			prefix := documents.Prefix(t)
			used, all := map[rune]int64{}, []rawstore.Charge(nil)
			for _, c := range []struct {
				cost int64
				keys string
			}{{1, "a"}, {2, "b"}, {3, "c"}, {4, "dab"}, {1, "abcadb"}, {1, "ddddd"}, {1, "ccab"}, {2, "cabcab"}} {
				var calls []rawstore.Call
				for _, k := range c.keys {
					calls = append(calls, single(rule, prefix+string(k), c.cost)...)
				}
				must(t, store, take, calls)
				for i, k := range c.keys {
					used[k] += c.cost
					all = append(all, calls[i].Charges[0])
					equal(t, fmt.Sprintf("%q, call %d: left", c.keys, i), calls[i].Charges[0].Remaining, 50-used[k])
				}
			}
			settledCharge(t, store, all...) // at 0
			for k := range used {
				equal(t, fmt.Sprintf("%c, all given back: left", k), must(t, store, peek, single(rule, prefix+string(k), 1)).Remaining, 50)
			}
		})
	}
}

// TestReadsInRow counts the commands by which a run of calls, and then their settlements, read
// keys that are there: one for keys that differ, and one for each key if the first comes again
// at once.
func TestReadsInRow(t *testing.T) {
	client := ownRedis(t)
	store := newStore(client)
	readings := regexp.MustCompile(`m?get:calls=\d+`)
	for _, algorithm := range []runtime.Algorithm{runtime.FixedWindow, runtime.SlidingCounter, runtime.TokenBucket} {
		rule := &runtime.Rule{Name: "r", Algorithm: algorithm, Window: time.Hour, Max: 50}
		for _, c := range []struct{ keys, want string }{
			{"abc", "[mget:calls=1]"}, {"abcabc", "[mget:calls=2]"}, {"ccbb", "[get:calls=4]"}, {"b", "[get:calls=1]"},
		} {
			var calls []rawstore.Call
			var charges []rawstore.Charge
			for _, k := range c.keys {
				calls = append(calls, single(rule, algorithm.String()+string(k), 1)...)
			}
			counted := func(what string, do func()) {
				client.ConfigResetStat(t.Context())
				do()
				stats := client.Info(t.Context(), "commandstats").Val()
				equal(t, fmt.Sprintf("%v, %q: %s", algorithm, c.keys, what), fmt.Sprint(readings.FindAllString(stats, -1)), c.want)
			}
			must(t, store, take, slices.Clone(calls))
			counted("take", func() { must(t, store, take, calls) })
			for i := range calls {
				charges = append(charges, calls[i].Charges[0])
			}
			counted("settle", func() { settledCharge(t, store, charges...) })
		}
	}
}

// together makes n calls while the server is paused, so that most are decided together.
func together(server *redistest.Server, n int, call func(i int)) {
	server.Pause()
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() { call(i) })
	}
	time.Sleep(20 * time.Millisecond) // most have come by then; it matters little
	server.Resume()
	wait.Wait()
}

// TestSharedTrips has many callers of one key be decided together, and wants them to be
// told what they would be one after the other: those that there is room for are admitted,
// and the others refused, or blocked for as long as the key then lives.
func TestSharedTrips(t *testing.T) {
	t.Parallel()
	const callers, cost, most = 60, 2, 51
	server := redistest.Start(t)
	client := server.Client(t)
	var want []int64
	for n := int64(1); n < most; n += cost {
		want = append(want, n)
	}
	for _, block := range []time.Duration{0, time.Minute, 300 * time.Hour} {
		for name, rule := range storetest.WaysOf(100*time.Hour, most) {
			if block > 0 && (rule.Algorithm == runtime.Concurrency || rule.Reserve > 0) {
				continue
			}
			rule.Block, rule.Prefix = block, block.String()+":"+rule.Prefix
			what := fmt.Sprintf("%s, block %v", name, block)
			store := newStore(client)
			must(t, store, peek, single(rule, rule.Prefix, 1))
			var results [callers]terms.Result
			together(server, callers, func(i int) { results[i] = must(t, store, take, single(rule, rule.Prefix, cost)).Result })
			var left []int64 // after each admitted call
			for _, r := range results {
				switch {
				case r.Allowed && !r.Blocked && r.At > 0 && r.RetryAfter == 0 && r.ResetAfter > 0:
					left = append(left, r.Remaining)
				case !r.Allowed && r.Blocked == (block > 0) && r.At == 0 && r.RetryAfter > block-30*time.Second && r.RetryAfter > 0 &&
					r.ResetAfter >= r.RetryAfter && (r.Remaining == 0 || r.Remaining == 1 && block == 0):
				default:
					t.Errorf("%s: got %+v", what, r)
				}
			}
			same(t, what+": left", want, slices.Sorted(slices.Values(left)))
			begin := time.Now()
			whole := must(t, store, peek, single(rule, rule.Prefix, cost)).ResetAfter
			if ttl := client.PTTL(t.Context(), rule.Prefix).Val(); ttl < whole-time.Second-time.Since(begin) || ttl > whole+2*time.Second {
				t.Errorf("%s: the key expires in %v, want %v or a little more", what, ttl, whole)
			}
		}
	}
}
