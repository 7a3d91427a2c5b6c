package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// A call that was decided in this process is settled there.
func TestSettleLocally(t *testing.T) {
	t.Parallel()
	limiter := runtime.New(new(brokenStore), quiet, runtime.WithFailurePolicy(runtime.FailLocal), runtime.WithReplicas(2))
	limit := (&runtime.Rule{Name: "r", Window: time.Hour, Max: 20}).Limit(nil)
	for i, cost := range []int64{1, 8} { // of the 10 that are this process's share, 3 are left
		d := taken(t, limiter, limit.WithCost(5))
		if i == 0 {
			settled(t, limiter, d, cost)
		} else {
			limiter.SettleLater(t.Context(), d, cost)
		}
	}
	denied(t, limiter, limit.WithCost(2))
	if _, err := limiter.Take(t.Context(), limit); err != nil {
		t.Errorf("a call within the share: %v", err)
	}
}

// A debt ends the denials that this process remembers, and a RetryAfter counts it.
func TestDebtIsNotHidden(t *testing.T) {
	t.Parallel()
	limiter := onRedis(redistest.Start(t).Client(t))
	limit := (&runtime.Rule{Name: "r", Window: time.Minute, Max: 60, Algorithm: runtime.TokenBucket}).Limit(nil).WithCost(60)
	d := taken(t, limiter, limit)
	var before, after *runtime.LimitedError
	if _, err := limiter.Take(t.Context(), limit.WithCost(30)); !errors.As(err, &before) {
		t.Fatal(err)
	}
	settled(t, limiter, d, 180)
	if _, err := limiter.Take(t.Context(), limit.WithCost(30)); !errors.As(err, &after) {
		t.Fatal(err)
	}
	if more := after.RetryAfter - before.RetryAfter; more < 90*time.Second || more > 120*time.Second {
		t.Errorf("RetryAfter grew by %v for a debt of two minutes: %v, then %v", more, before.RetryAfter, after.RetryAfter)
	}
	if err := limiter.Refund(t.Context(), d); err != runtime.ErrSettled {
		t.Errorf("refund of a settled decision: %v", err)
	}
}

// A settled cost out of bounds changes nothing, and the decision can still be
// settled.
func TestSettleOutOfBounds(t *testing.T) {
	t.Parallel()
	limiter := inMemory()
	log := &runtime.Rule{Name: "log", Window: time.Hour, Max: 1000}
	bucket := &runtime.Rule{Name: "bucket", Window: time.Hour, Max: 1000, Algorithm: runtime.TokenBucket}
	for i, c := range []struct {
		rule     *runtime.Rule
		settled  int64
		wantText string
	}{
		{log, 5 + runtime.MaxLogCost + 1, "settled cost 256 is more than 250 above the 5 that were reserved"},
		{bucket, runtime.MaxCount + 1, "settled cost is above 1000000000000"},
		{bucket, 1<<63 - 1, "settled cost is above 1000000000000"},
	} {
		limit := c.rule.Limit(key(fmt.Sprint(i))).WithCost(5)
		d := taken(t, limiter, limit)
		if err := limiter.Settle(t.Context(), d, c.settled); !errors.Is(err, runtime.ErrInvalidLimit) || !strings.Contains(err.Error(), c.wantText) {
			t.Errorf("%d: got %v, want %q", c.settled, err, c.wantText)
		}
		wantLeft(t, limiter, limit.WithCost(1), 995)
		settled(t, limiter, d, 3)
		wantLeft(t, limiter, limit.WithCost(1), 997)
	}
}

// However slow the store is, callers do not wait until 4,096 charges do; nothing is
// lost; and Close waits for all.
func TestSettleLaterQueue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx := context.Background()
		store, gate := newFake(), make(chan struct{})
		var failures, made atomic.Int64
		store.settle = func(ctx context.Context, charges []terms.Charge) error {
			select {
			case <-gate:
			case <-ctx.Done():
				return ctx.Err()
			}
			made.Add(int64(len(charges)))
			return store.MemoryStore.Settle(ctx, charges)
		}
		limiter := runtime.New(store, quiet, observing(runtime.Observer{Failure: func(_ context.Context, ev runtime.FailureEvent) {
			if !ev.Settling || ev.Rule != "r" {
				t.Errorf("got %+v", ev)
			}
			failures.Add(1)
		}}))
		limit := (&runtime.Rule{Name: "r", Window: time.Hour, Max: 100_000}).Limit(nil)
		later := func() {
			d := taken(t, limiter, limit)
			limiter.SettleLater(ctx, d, 0)
		}
		later()
		time.Sleep(10 * time.Millisecond) // the goroutine has taken the first
		start := time.Now()
		for range 4096 {
			later()
		}
		equal(t, "callers waited", time.Since(start), 0)
		later() // the queue is full
		equal(t, "with a full queue the caller waited", time.Since(start), runtime.SettleTimeout)
		synctest.Wait()
		close(gate)
		ok(t, limiter.Close())
		// The first had its time, and so had the last with 127 others.
		if n, lost := made.Load(), failures.Load(); n != 4096-127 || lost != 129 {
			t.Errorf("%d settled, %d reported as lost", n, lost)
		}
		wantLeft(t, limiter, limit, 100_000-129)
		later() // at once after Close
		equal(t, "settled after Close", made.Load(), 4096-127+1)
	})
}

// Close does not wait for ever for a store that does not settle.
func TestCloseWhileUnsettled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx := context.Background()
		store, gate := newFake(), make(chan struct{})
		store.settle = func(ctx context.Context, charges []terms.Charge) error {
			<-gate // whatever its context says
			return store.MemoryStore.Settle(ctx, charges)
		}
		limiter := runtime.New(store, quiet)
		limit := (&runtime.Rule{Name: "r", Window: time.Hour, Max: 10}).Limit(nil)
		d := taken(t, limiter, limit)
		limiter.SettleLater(ctx, d, 0)
		start := time.Now()
		if err := limiter.Close(); err == nil || time.Since(start) != 2*time.Second {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
		close(gate)
		ok(t, limiter.Close())
	})
}

// A store that panics while it settles ends neither the process nor the queue.
func TestSettleLaterPanics(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var in atomic.Value
		store, panics := newFake(), false
		store.settle = func(ctx context.Context, charges []terms.Charge) error {
			if panics {
				panic("settle")
			}
			return store.MemoryStore.Settle(ctx, charges)
		}
		limiter := runtime.New(store, quiet, observing(runtime.Observer{Panic: func(ev runtime.PanicEvent) { in.Store(ev.In) }}))
		limit := (&runtime.Rule{Name: "r", Window: time.Hour, Max: 10}).Limit(nil)
		for _, panics = range []bool{true, false} {
			limiter.SettleLater(t.Context(), taken(t, limiter, limit), 0)
			time.Sleep(time.Second)
			synctest.Wait()
		}
		ok(t, limiter.Close())
		if n := left(t, limiter, limit); n != 9 || in.Load() != "store" || store.settles.Load() != 2 {
			t.Errorf("%d left, a panic in %v, settled %d times", n, in.Load(), store.settles.Load())
		}
	})
}

// Many callers settle on a real Redis at once, also a key's WRONGTYPE among
// them; only what fails is reported.
func TestSettleLaterOnRedis(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	var failed sync.Map
	limiter := runtime.New(runtime.NewRedisStore(client, patient), quiet, closed, observing(runtime.Observer{
		Failure: func(_ context.Context, ev runtime.FailureEvent) { failed.Store(fmt.Sprintf("%+v", ev), true) },
	}))
	good := &runtime.Rule{Name: "good", Window: time.Hour, Max: 1_000_000}
	bad := &runtime.Rule{Name: "bad", Window: time.Hour, Max: 1_000_000}
	concurrently(32, func(c int) {
		for i := range 50 {
			limit := good.Limit(key(fmt.Sprint(i % 7))).WithCost(3)
			if c == 0 {
				limit = bad.Limit(key(fmt.Sprint(i)))
			}
			d, err := limiter.Take(t.Context(), limit)
			if err != nil {
				t.Error(err)
			}
			if c == 0 {
				client.Set(t.Context(), fmt.Sprintf("rate_limit:bad:%d", i), "not a limit's", 0)
			}
			limiter.SettleLater(t.Context(), d, int64(i%6))
		}
	})
	ok(t, limiter.Close())
	want := map[int]int64{}
	for i := range 50 {
		want[i%7] += 31 * int64(i%6)
	}
	for i, used := range want {
		wantLeft(t, limiter, good.Limit(key(fmt.Sprint(i))), 1_000_000-used)
	}
	failed.Range(func(ev, _ any) bool {
		if ev != "{Rule:bad Class:wrongtype Policy:default Settling:true Holding:false Err:WRONGTYPE Operation against a key holding the wrong kind of value}" {
			t.Errorf("got %v", ev)
		}
		failed.Delete(ev)
		want = nil
		return true
	})
	if want != nil {
		t.Error("the keys of a foreign type were not reported")
	}
}

// Another limiter settles no decision. Its own still does, once.
func TestSettleByOtherLimiter(t *testing.T) {
	t.Parallel()
	for _, source := range []string{"store", "local"} {
		synctest.Test(t, func(t *testing.T) {
			var store runtime.Store = runtime.NewMemoryStore()
			if source == "local" {
				store = new(brokenStore)
			}
			limiter := runtime.New(store, quiet, runtime.WithFailurePolicy(runtime.FailLocal))
			defer func() { _ = limiter.Close() }()
			d := taken(t, limiter, (&runtime.Rule{Name: "rate", Window: time.Hour, Max: 10}).Limit(key("k")), permitRule(3).Limit(key("k")))
			for _, other := range []*runtime.Limiter{runtime.New(store, quiet), runtime.New(nil, quiet)} {
				if err := other.Settle(t.Context(), d, 0); !errors.Is(err, runtime.ErrOtherLimiter) {
					t.Errorf("%s: settle: %v", source, err)
				}
				if err := other.Refund(t.Context(), d); !errors.Is(err, runtime.ErrOtherLimiter) {
					t.Errorf("%s: refund: %v", source, err)
				}
				other.SettleLater(t.Context(), d, 0)
			}
			time.Sleep(5 * time.Hour) // the permit is renewed
			equal(t, source+": in flight", limiter.Permits()["permits"], 1)
			settled(t, limiter, d)
			equal(t, source+": in flight at the end", limiter.Permits()["permits"], 0)
			if err := limiter.Refund(t.Context(), d); !errors.Is(err, runtime.ErrSettled) {
				t.Errorf("%s: again: %v", source, err)
			}
		})
	}
}

// A decision knows what each of its limits was charged, however many there are and however
// long their keys, and whatever other decisions are made meanwhile.
func TestSettleEachLimit(t *testing.T) {
	t.Parallel()
	limiter := inMemory()
	random := rand.New(rand.NewPCG(1, 2))
	type call struct {
		decision runtime.Decision
		limits   []runtime.Limit
		costs    []int64
	}
	var calls []call
	for i := range 500 {
		var c call
		for n := range 1 + random.IntN(runtime.MaxLimits) {
			part := fmt.Sprint(i, "-", n, strings.Repeat("x", random.IntN(150)))
			c.limits = append(c.limits, (&runtime.Rule{Name: fmt.Sprint("r", n), Window: time.Hour, Max: 100}).Limit(key(part)).WithCost(5))
			c.costs = append(c.costs, random.Int64N(20)-1)
		}
		c.decision = taken(t, limiter, c.limits...)
		calls = append(calls, c)
	}
	random.Shuffle(len(calls), func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
	for _, c := range calls {
		costs := c.costs[:random.IntN(len(c.costs)+1)]
		settled(t, limiter, c.decision, costs...)
		for i, limit := range c.limits {
			want := int64(95)
			if i < len(costs) && costs[i] >= 0 {
				want = 100 - costs[i]
			}
			wantLeft(t, limiter, limit.WithCost(1), want)
		}
	}
}

// A decision may be settled at costs of limits that were not charged: those that were
// switched off, free or left out when it was made.
func TestSettleUncharged(t *testing.T) {
	t.Parallel()
	limiter := inMemory()
	rate := &runtime.Rule{Name: "rate", Window: time.Hour, Max: 10}
	free := rate.Limit(key("free")).WithCost(0)
	a := rate.Limit(key("k"))
	for _, limits := range [][]runtime.Limit{{a, free}, {free, a}, {a}} {
		d := taken(t, limiter, limits...)
		refunded(t, limiter, d)
	}
	wantLeft(t, limiter, a, 10)
	if err := limiter.Settle(t.Context(), runtime.Decision{}, 5); err != nil || left(t, limiter, a) != 10 {
		t.Errorf("a decision that charged nothing: %v, left %d", err, left(t, limiter, a))
	}
}
