package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rawstore"
)

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
// and the others denied, or blocked for as long as the key then lives.
func TestSharedTrips(t *testing.T) {
	t.Parallel()
	const callers, cost, most = 60, 2, 51
	server := redistest.Start(t)
	client := server.Client(t)
	for _, block := range []time.Duration{0, time.Minute, 300 * time.Hour} {
		for name, rule := range serverRules(100*time.Hour, most) {
			if block > 0 && (rule.Algorithm == runtime.Concurrency || rule.Reserve > 0) {
				continue
			}
			rule.Block, rule.Prefix = block, block.String()+":"+rule.Prefix
			store := runtime.NewRedisStore(client, patient)
			must(t, store, peek, single(rule, rule.Prefix, 1))
			var mu sync.Mutex
			var left []int64
			denied := 0
			together(server, callers, func(int) {
				c, err := try(store, take, single(rule, rule.Prefix, cost))
				r := c.Result
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil && r.Allowed && !r.Blocked && r.At > 0 && r.RetryAfter == 0 && r.ResetAfter > 0:
					left = append(left, r.Remaining)
				case err == nil && !r.Allowed && r.Blocked == (block > 0) && r.At == 0 && r.RetryAfter > block-30*time.Second && r.RetryAfter > 0 &&
					r.ResetAfter >= r.RetryAfter && (r.Remaining == 0 || r.Remaining == 1 && block == 0):
					denied++
				default:
					t.Errorf("%s, block %v: got %+v, %v", name, block, r, err)
				}
			})
			var want []int64
			for n := int64(1); n < most; n += cost {
				want = append(want, n)
			}
			slices.Sort(left)
			if diff := cmp.Diff(want, left); diff != "" || denied != callers-most/cost {
				t.Errorf("%s, block %v: %d denied; left after each admitted call (-want +got):\n%s", name, block, denied, diff)
			}
			whole := must(t, store, peek, single(rule, rule.Prefix, cost)).ResetAfter
			if ttl := client.PTTL(t.Context(), rule.Prefix).Val(); ttl < whole-time.Second || ttl > whole+2*time.Second {
				t.Errorf("%s, block %v: the key expires in %v, want %v or a little more", name, block, ttl, whole)
			}
		}
	}
}

// TestLongBatch splits a batch that is too long for one trip, in order.
func TestLongBatch(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	limiter := onRedis(client)
	rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 700}
	limits := slices.Repeat([]runtime.Limit{rule.Limit(key("k"))}, 1000)
	for i, o := range limiter.TakeEach(context.Background(), limits...) {
		if (o.Err == nil) != (i < 700) || i < 700 && o.Remaining != int64(699-i) {
			t.Fatalf("call %d: got %+v", i, o)
		}
	}
}

// TestOrderOfArrival has calls to a few keys, alike and not, to one limit and
// to several, come one after the other while the server is paused. They are
// decided as if each had been made alone.
func TestOrderOfArrival(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client(t)
	for name, rule := range serverRules(time.Hour, 12) {
		if rule.Algorithm == runtime.TokenBucket || rule.Algorithm == runtime.LeakyBucket {
			rule.Window = runtime.MaxWindow // nothing drains meanwhile
		}
		store := runtime.NewRedisStore(client, patient, atOnce, runtime.Linger(time.Hour))
		model := runtime.NewMemoryStore()
		key := func(id int) []byte { return []byte(rule.Prefix + fmt.Sprint(id)) }
		var sequence [][]rawstore.Call
		for range 60 { // which fit in one trip
			charges := []rawstore.Charge{{Rule: rule, Key: key(rand.IntN(3)), Max: rule.Max, Cost: 1}}
			switch rand.IntN(5) {
			case 0:
				charges[0].Cost = 2
			case 1:
				charges = append(charges, rawstore.Charge{Rule: rule, Key: key(3 + rand.IntN(2)), Max: rule.Max, Cost: 1})
			case 2:
				charges[0].Max = 10
			}
			sequence = append(sequence, []rawstore.Call{{Charges: charges}})
		}
		// Two calls that do nothing are under way, so that all others wait.
		ok(t, rawstore.On(store).Peek(t.Context(), []rawstore.Call{{Charges: []rawstore.Charge{{Rule: rule, Key: key(9), Max: 1, Cost: 1}}}}))
		server.Pause()
		var wait sync.WaitGroup
		for flying := range 2 {
			wait.Go(func() {
				_ = rawstore.On(store).Peek(t.Context(), []rawstore.Call{{Charges: []rawstore.Charge{{Rule: rule, Key: key(9), Max: 1, Cost: 1}}}})
			})
			eventually(t, "a batch is under way", func() bool { return store.InFlight() > flying })
		}
		for i, calls := range sequence {
			wait.Go(func() {
				ok(t, errors.Join(rawstore.On(store).Take(t.Context(), calls), calls[0].Err))
			})
			eventually(t, "a call waits", func() bool { return store.Waiting() > i })
		}
		if n := store.Waiting(); n != len(sequence) {
			t.Fatalf("%s: %d wait, want %d", name, n, len(sequence))
		}
		server.Resume()
		wait.Wait()
		for i, calls := range sequence {
			charges := slices.Clone(calls[0].Charges)
			ok(t, rawstore.On(model).Take(t.Context(), []rawstore.Call{{Charges: charges}}))
			for j, want := range charges {
				if got := calls[0].Charges[j]; got.Allowed != want.Allowed || got.Remaining != want.Remaining {
					t.Errorf("%s: call %d %q at cost %d: got %t with %d left, want %t with %d", name, i,
						got.Key, got.Cost, got.Allowed, got.Remaining, want.Allowed, want.Remaining)
				}
			}
		}
	}
}

// TestBatchWaitsOnce spends the time of one call on a batch for many trips when
// Redis gives no answer.
func TestBatchWaitsOnce(t *testing.T) {
	t.Parallel()
	const calls = 1000
	rule := &runtime.Rule{Name: "batch", Prefix: "batch:", Window: time.Hour, Max: 1}
	server := redistest.Start(t)
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{server.Addr}})
	t.Cleanup(func() { _ = cluster.Close() })
	server.Pause()
	t.Cleanup(server.Resume)
	for name, client := range map[string]redis.UniversalClient{"one server": server.Client(t), "slots": cluster} {
		store := runtime.NewRedisStore(client, runtime.WithTimeout(100*time.Millisecond))
		limiter := runtime.New(store, quiet, closed)
		var limits []runtime.Limit
		for i := range int64(calls) {
			limits = append(limits, rule.Limit(runtime.NewKey().AddInt(i)))
		}
		for i, o := range limiter.TakeEach(context.Background(), limits...) {
			if !errors.Is(o.Err, runtime.ErrUnavailable) {
				t.Fatalf("%s: call %d: got %+v", name, i, o)
			}
		}
		same(t, fmt.Sprintf("%s: why calls were not decided", name), map[runtime.ErrorClass]int64{runtime.ClassTimeout: calls}, store.Failures())
	}
}

// TestBatchOfOneWhoLeft sends no more of a batch when its caller has gone.
func TestBatchOfOneWhoLeft(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(runtime.TuneRedis(&redis.Options{Addr: redistest.Start(t).Addr}))
	t.Cleanup(func() { _ = client.Close() })
	ctx, cancel := context.WithCancel(context.Background())
	count := counting(client)
	client.AddHook(hook(func(cmds []redis.Cmder, send func() error) error {
		if cmds[0].Name() == "evalsha" {
			defer cancel()
		}
		return send()
	}))
	limiter := runtime.New(runtime.NewRedisStore(client), quiet, closed)
	rule := &runtime.Rule{Name: "batch", Prefix: "batch:", Window: time.Hour, Max: 2000}
	limiter.TakeEach(ctx, slices.Repeat([]runtime.Limit{rule.Limit(nil)}, 1000)...)
	if n := len(slices.DeleteFunc(count.sent(), func(name string) bool { return name != "evalsha" })); n > 1 {
		t.Errorf("%d scripts were sent", n)
	}
}

// TestForbiddenKey has callers share trips of whom a few name keys that Redis
// forbids the client's user: they alone fail, and all others are charged once.
func TestForbiddenKey(t *testing.T) {
	t.Parallel()
	const callers, keys, most = 60, 20, 2
	server := redistest.Start(t)
	ok(t, server.Client(t).Do(t.Context(), "ACL", "SETUSER", "limiter", "on", "nopass", "~free:*", "+@all").Err())
	client := redis.NewClient(&redis.Options{Addr: server.Addr, Username: "limiter", Password: "any"})
	t.Cleanup(func() { _ = client.Close() })
	count := counting(client)
	store := runtime.NewRedisStore(client, patient, atOnce)
	rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: most}
	var begun atomic.Int64
	take := func(key string) (terms.Result, error) {
		begun.Add(1)
		calls := []rawstore.Call{{Charges: []rawstore.Charge{{Rule: rule, Key: []byte(key), Max: most, Cost: 1}}}}
		err := errors.Join(rawstore.On(store).Take(t.Context(), calls), calls[0].Err)
		return calls[0].Charges[0].Result, err
	}
	if _, err := take("free:"); err != nil {
		t.Fatal(err)
	}
	server.Pause()
	var admitted [keys]atomic.Int64
	var wait sync.WaitGroup
	for range 2 { // as many trips as are under way at a time, so that all others wait
		wait.Go(func() { _, _ = take("free:") })
		time.Sleep(10 * time.Millisecond)
	}
	for i := range callers {
		wait.Go(func() {
			result, err := take(fmt.Sprint("free:", i%keys))
			if err != nil {
				t.Errorf("call on key %d: %v", i%keys, err)
			}
			if result.Allowed {
				admitted[i%keys].Add(1)
			}
		})
		if i%10 == 0 {
			wait.Go(func() {
				if _, err := take(fmt.Sprint("forbidden:", i)); runtime.ClassOf(err) != runtime.ClassAuth {
					t.Errorf("call on a forbidden key: %v", err)
				}
			})
		}
	}
	eventually(t, "all have called", func() bool { return begun.Load() >= callers })
	server.Resume()
	wait.Wait()
	if n := count.scripts(); n >= callers {
		t.Errorf("%d scripts were sent: the callers shared no trips", n)
	}
	for i := range admitted {
		equal(t, fmt.Sprintf("key %d: admitted", i), admitted[i].Load(), most)
	}
}
