package runtime_test

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/testkit/faultproxy"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// permitKey is where Redis keeps the permits of permitRule for the key "k".
const permitKey = "rate_limit:permits:k%permits"

// permitsHeld returns how many permits Redis knows of, beside the three members of a key
// that are none.
func permitsHeld(client redis.Cmdable) int64 {
	return client.ZCard(context.Background(), permitKey).Val() - 3
}

// Calls that share a trip, and are merged into one charge, hold permits of their
// own: each returns as many as it has got.
func TestPermitsOfSharedTrips(t *testing.T) {
	client := ownRedis(t)
	limiter := onRedis(client)
	rule := permitRule(400)
	rule.Window = time.Hour // none is renewed meanwhile
	limit := rule.Limit(key("k"))
	costs := []int64{3, 1, 1, 1, 1, 1, 1, 1, 1, 1}
	for range 2 {
		calls, held := make([]runtime.Decision, 250), int64(0)
		concurrently(len(calls), func(i int) {
			calls[i] = taken(t, limiter, limit.WithCost(costs[i%10]))
			atomic.AddInt64(&held, costs[i%10])
		})
		for _, i := range rand.Perm(len(calls)) {
			if n := permitsHeld(client); n != held {
				t.Fatalf("%d members for %d permits", n, held)
			}
			settled(t, limiter, calls[i])
			held -= costs[i%10]
		}
		wantLeft(t, limiter, limit, 400)
	}
}

// The answer for a caller who has given up returns its permits.
func TestPermitsOfLateAnswers(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := faultproxy.Start(t, server.Addr)
	slow := server.Client(t, func(o *redis.Options) { o.Addr = proxy.Addr })
	limiter := runtime.New(runtime.NewRedisStore(slow, runtime.WithTimeout(150*time.Millisecond)), quiet, closed)
	near := server.Client(t)
	limit := permitRule(10).Limit(key("k"))
	reach := func() { // the script and the connection are warm then, and Redis knows of no permit
		eventually(t, "redis is reached", func() bool {
			d, err := limiter.Take(t.Context(), limit)
			return err == nil && limiter.Settle(t.Context(), d) == nil
		})
		near.Del(t.Context(), permitKey)
	}
	returns := func(whose string) {
		eventually(t, "permits of "+whose+" are returned", func() bool {
			return near.ZScore(t.Context(), permitKey, "mean").Val() > 0 && permitsHeld(near) == 0
		})
	}
	reach()
	proxy.Delay(300 * time.Millisecond) // each way, or altogether: beyond the timeout in both cases
	refusedAs(t, limiter, runtime.ErrUnavailable, limit.WithCost(3))
	returns("a late answer")

	proxy.Pass()
	reach()
	proxy.Delay(20 * time.Millisecond)
	given, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	if d, err := limiter.Take(given, limit); err == nil { // on a busy machine, which may also return it later
		_ = limiter.Settle(t.Context(), d)
	}
	returns("a caller who has gone")
	equal(t, "in flight", bridge.LimiterOf(limiter).Permits()["permits"], 0)
}

// Permits outlast a Redis that does not respond and one that has lost everything,
// and are returned in the end.
func TestPermitsThroughFaults(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := faultproxy.Start(t, server.Addr)
	far := server.Client(t, func(o *redis.Options) { o.Addr = proxy.Addr })
	near := server.Client(t)
	limiter := runtime.New(runtime.NewRedisStore(far, runtime.WithTimeout(300*time.Millisecond)), quiet, closed)
	rule := *permitRule(4)
	rule.Window = 3 * time.Second // a busy machine renews in time
	held := func(n int64, what string) {
		eventually(t, what, func() bool { return permitsHeld(near) == n })
	}
	var all []runtime.Decision
	eventually(t, "four calls are admitted", func() bool {
		if d, err := limiter.Take(t.Context(), rule.Limit(key("k"))); err == nil {
			all = append(all, d)
		}
		return len(all) == 4
	})
	near.FlushAll(t.Context())
	held(4, "permits are written again")
	proxy.Stall()
	time.Sleep(rule.Window / 2)
	proxy.Pass()
	near.Del(t.Context(), permitKey)
	held(4, "permits are written again after a stall")
	proxy.Stall()
	for _, d := range all[:2] {
		if err := limiter.Settle(t.Context(), d); err == nil {
			t.Error("returned through a proxy that stalls")
		}
	}
	proxy.Pass()
	held(2, "two permits are returned again")
	for _, d := range all[2:] {
		_ = limiter.Settle(t.Context(), d)
	}
	held(0, "all permits are returned")
	equal(t, "in flight", bridge.LimiterOf(limiter).Permits()["permits"], 0)
	_ = limiter.Close()
}

// A call that waits for permits looks within 60 ms whether another process has returned
// one: it asks Redis, though its own process knows of a refusal that is not as old.
func TestPermitOfAnotherProcess(t *testing.T) {
	t.Parallel()
	const wait, tries, soon = time.Second, 30, 60 * time.Millisecond
	server := redistest.Start(t)
	limit := waitingRule(1, wait).Limit(nil)
	holder, client := onRedis(server.Client(t)), server.Client(t)
	d := taken(t, holder, limit)
	var asked recorder[time.Time]
	client.AddHook(redistest.Hook(func(cmds []redis.Cmder, send func() error) error {
		if !redistest.Connects(cmds...) {
			asked.add(time.Now())
		}
		return send()
	}))
	enough := false
	for n := 0; n < tries && !enough; n++ {
		other, before := onRedis(client), len(asked.all())
		refused(t, other, limit)
		// Between some the machine may have been busy.
		times, near := asked.all()[before:], 0
		for i := 1; i < len(times); i++ {
			if times[i].Sub(times[i-1]) <= soon {
				near++
			}
		}
		enough = near >= 5 && near >= len(times)/3
		_ = other.Close()
	}
	if !enough {
		t.Errorf("no call asked every %v", soon)
	}
	settled(t, holder, d)
	_ = holder.Close()
}
