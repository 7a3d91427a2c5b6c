package runtime_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/faultproxy"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rawstore"
)

// specials is how many members of a key are no permits.
const specials = 3

// Calls that share a trip, and are merged into one charge, hold permits of their
// own: each returns as many as it has got.
func TestPermitsOfSharedTrips(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	limiter := onRedis(client)
	limit := permitRule(400).Limit(key("k"))
	for range 5 {
		type call struct {
			decision runtime.Decision
			limit    runtime.Limit
			cost     int64
		}
		var mu sync.Mutex
		var calls []call
		held := int64(0)
		concurrently(250, func(i int) {
			cost := int64(1)
			if i%10 == 0 {
				cost = 3
			}
			limit := limit.WithCost(cost)
			d, err := limiter.Take(t.Context(), limit)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
				return
			}
			calls, held = append(calls, call{d, limit, cost}), held+cost
		})
		rand.Shuffle(len(calls), func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
		for _, c := range calls {
			if n := client.ZCard(t.Context(), "rate_limit:permits:k%permits").Val(); n != held+specials {
				t.Fatalf("%d members for %d permits", n, held)
			}
			settled(t, limiter, c.decision)
			held -= c.cost
		}
		wantLeft(t, limiter, limit, 400)
	}
}

// A key lives for as long as any of its permits, whatever windows they have: a
// charge or a renewal by a shorter window does not let it go sooner.
func TestPermitExpiry(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	store := runtime.NewRedisStore(client, patient)
	longer, shorter := *permitRule(9), *permitRule(9)
	longer.Window, shorter.Window = time.Hour, time.Second
	charge := func(rule *runtime.Rule) []rawstore.Call {
		return []rawstore.Call{{Charges: []rawstore.Charge{{Rule: rule, Key: []byte("k"), Max: 9, Cost: 1}}}}
	}
	lives := func(least, most time.Duration) {
		t.Helper()
		if ttl := client.PTTL(t.Context(), "k").Val(); ttl < least || ttl > most {
			t.Errorf("lives for %v, want from %v to %v", ttl, least, most)
		}
	}
	calls := charge(&shorter)
	for _, do := range []func(context.Context, []rawstore.Call) error{rawstore.On(store).Take, rawstore.On(store).Renew} {
		ok(t, do(t.Context(), calls))
		lives(1, 2*time.Second)
	}
	ok(t, rawstore.On(store).Take(t.Context(), charge(&longer)))
	for _, do := range []func(context.Context, []rawstore.Call) error{rawstore.On(store).Take, rawstore.On(store).Renew} {
		ok(t, do(t.Context(), calls))
		lives(time.Hour-time.Minute, time.Hour+time.Second)
	}
}

// A denial is forgotten when a permit comes back in this process, and is soon when
// one does in another.
func TestPermitDenials(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	here, there := onRedis(client), onRedis(client)
	limit := permitRule(1).Limit(key("k"))
	denied := func(source runtime.Source) {
		t.Helper()
		if d, err := here.Take(t.Context(), limit); !errors.Is(err, runtime.ErrLimited) || source != 0 && d.Source != source {
			t.Fatalf("got %+v, %v", d, err)
		}
	}
	for range 50 {
		d := taken(t, here, limit)
		denied(runtime.SourceStore)
		denied(0)
		settled(t, here, d)
	}
	d := taken(t, there, limit)
	denied(runtime.SourceStore)
	settled(t, there, d)
	returned := time.Now()
	eventually(t, "the return is noticed", func() bool {
		asked := time.Now()
		d, err := here.Take(t.Context(), limit)
		if err == nil {
			settled(t, here, d)
			return true
		}
		if d.Source == runtime.SourceRecalled && asked.Sub(returned) > time.Second {
			t.Fatalf("denied by memory %v after the return", asked.Sub(returned))
		}
		return false
	})
}

// The answer for a caller who has given up returns its permits.
func TestPermitsOfLateAnswers(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.Start(t)
	proxy := faultproxy.Start(t, server.Addr)
	slow := redis.NewClient(&redis.Options{Addr: proxy.Addr})
	t.Cleanup(func() { _ = slow.Close() })
	limiter := runtime.New(runtime.NewRedisStore(slow, runtime.WithTimeout(50*time.Millisecond)), quiet, closed)
	near := server.Client(t)
	limit := permitRule(10).Limit(key("k"))
	returns := func() bool { // a permit has come back, and none is held
		mean := near.ZScore(ctx, "rate_limit:permits:k%permits", "mean").Val()
		return mean > 0 && near.ZCard(ctx, "rate_limit:permits:k%permits").Val() == specials
	}
	// Warm the script and the connection.
	eventually(t, "the proxy is reached", func() bool {
		d, err := limiter.Take(ctx, limit)
		return err == nil && limiter.Settle(ctx, d) == nil
	})
	near.Del(ctx, "rate_limit:permits:k%permits")

	proxy.Delay(100 * time.Millisecond) // each way, or altogether: beyond the timeout in both cases
	if _, err := limiter.Take(ctx, limit.WithCost(3)); !errors.Is(err, runtime.ErrUnavailable) {
		t.Fatalf("got %v", err)
	}
	eventually(t, "permits of a late answer are returned", returns)

	proxy.Pass()
	near.Del(ctx, "rate_limit:permits:k%permits")
	eventually(t, "redis is reached again", func() bool {
		d, err := limiter.Take(ctx, limit)
		return err == nil && limiter.Settle(ctx, d) == nil
	})
	near.Del(ctx, "rate_limit:permits:k%permits")
	proxy.Delay(20 * time.Millisecond)
	given, cancel := context.WithCancel(ctx)
	time.AfterFunc(10*time.Millisecond, cancel)
	if d, err := limiter.Take(given, limit); err == nil {
		settled(t, limiter, d)
	}
	eventually(t, "permits of a caller who has gone are returned", returns)
	equal(t, "in flight", limiter.Permits()["permits"], 0)
}

// Permits outlast a Redis that does not respond and one that has lost everything,
// and are returned in the end.
func TestPermitsThroughFaults(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := faultproxy.Start(t, server.Addr)
	far := redis.NewClient(&redis.Options{Addr: proxy.Addr})
	t.Cleanup(func() { _ = far.Close() })
	near := server.Client(t)
	limiter := runtime.New(runtime.NewRedisStore(far), quiet, closed)
	rule := *permitRule(4)
	rule.Window = 1500 * time.Millisecond
	limit := rule.Limit(key("k"))
	const name = "rate_limit:permits:k%permits"
	held := func(n int64) func() bool {
		return func() bool { return near.ZCard(t.Context(), name).Val() == n+specials }
	}
	var all []runtime.Decision
	for range 4 {
		eventually(t, "a call is admitted", func() bool {
			d, err := limiter.Take(t.Context(), limit)
			if err == nil {
				all = append(all, d)
			}
			return err == nil
		})
	}
	for range 2 {
		near.FlushAll(t.Context())
		eventually(t, "permits are written again", held(4))
		proxy.Stall()
		time.Sleep(rule.Window / 2)
		proxy.Pass()
		near.Del(t.Context(), name)
		eventually(t, "permits are written again after a stall", held(4))
	}
	proxy.Stall()
	for _, d := range all[:2] {
		if err := limiter.Settle(t.Context(), d); err == nil {
			t.Error("returned through a proxy that stalls")
		}
	}
	proxy.Pass()
	eventually(t, "two permits are returned again", held(2))
	for _, d := range all[2:] {
		_ = limiter.Settle(t.Context(), d)
	}
	eventually(t, "all permits are returned", held(0))
	equal(t, "in flight", limiter.Permits()["permits"], 0)
	_ = limiter.Close()
}

// A call that waits for permits looks within 60 ms whether another process has returned
// one: it asks Redis, though its own process knows of a denial that is not as old.
func TestPermitOfAnotherProcess(t *testing.T) {
	t.Parallel()
	const wait, tries = time.Second, 10 // a machine may be busy
	server := redistest.Start(t)
	rule := permitRule(1)
	rule.Wait = wait
	holder := onRedis(server.Client(t))
	defer func() { _ = holder.Close() }()
	d := taken(t, holder, rule.Limit(nil))
	client := server.Client(t)
	count := counting(client)
	most := 0
	for n := 0; n < tries && most <= int(wait/(60*time.Millisecond)); n++ {
		other := onRedis(client)
		count.sent()
		denied(t, other, rule.Limit(nil))
		most = max(most, len(count.sent()))
		_ = other.Close()
	}
	if most <= int(wait/(60*time.Millisecond)) {
		t.Errorf("a call asked %d times in %v", most, wait)
	}
	settled(t, holder, d)
}
