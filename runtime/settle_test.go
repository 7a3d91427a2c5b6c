package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rule"
)

// A call that was decided in this process is settled there.
func TestSettleLocally(t *testing.T) {
	t.Parallel()
	limiter := runtime.New(broken(), quiet, runtime.WithFailurePolicy(runtime.FailLocal), runtime.WithReplicas(2))
	limit := perHour(20).Limit(nil)
	settled(t, limiter, taken(t, limiter, limit.WithCost(5)), 1)
	limiter.SettleLater(t.Context(), taken(t, limiter, limit.WithCost(5)), 8)
	refused(t, limiter, limit.WithCost(2)) // of the 10 that are this process's share 1 is left
	taken(t, limiter, limit)
}

// A debt ends the refusals that this process remembers, and a RetryAfter counts it.
func TestDebtIsNotHidden(t *testing.T) {
	limiter := onRedis(ownRedis(t))
	limit := (&runtime.Rule{Name: "r", Window: time.Minute, Max: 60, Algorithm: runtime.TokenBucket}).Limit(nil)
	d := taken(t, limiter, limit.WithCost(60))
	before, _ := refused(t, limiter, limit.WithCost(30))
	settled(t, limiter, d, 180)
	after, _ := refused(t, limiter, limit.WithCost(30))
	between(t, "RetryAfter grew, for a debt of two minutes, by", after.RetryAfter-before.RetryAfter, 90*time.Second, 120*time.Second)
	wantError(t, "refund of a settled decision", limiter.Refund(t.Context(), d), runtime.ErrSettled)
}

// A settled cost out of bounds changes nothing, and the decision can still be settled.
func TestSettleOutOfBounds(t *testing.T) {
	t.Parallel()
	limiter := inMemory()
	for i, c := range []struct {
		algorithm runtime.Algorithm
		settled   int64
		want      string
	}{
		{runtime.SlidingLog, 5 + rule.MaxLogCost + 1, "settled cost 256 is more than 250 above the 5 that were reserved"},
		{runtime.TokenBucket, rule.MaxCount + 1, "settled cost is above 1000000000000"},
		{runtime.TokenBucket, 1<<63 - 1, "settled cost is above 1000000000000"},
	} {
		limit := (&runtime.Rule{Name: "r", Window: time.Hour, Max: 1000, Algorithm: c.algorithm}).Limit(key(fmt.Sprint(i)))
		d := taken(t, limiter, limit.WithCost(5))
		if err := limiter.Settle(t.Context(), d, c.settled); !errors.Is(err, runtime.ErrInvalidLimit) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d: got %v, want %q", c.settled, err, c.want)
		}
		wantLeft(t, limiter, limit, 995)
		settled(t, limiter, d, 3)
		wantLeft(t, limiter, limit, 997)
	}
}

// Another limiter settles no decision. Its own still does, once.
func TestSettleByOtherLimiter(t *testing.T) {
	eachCase(t, map[string]runtime.Store{"store": runtime.NewMemoryStore(), "local": broken()}, func(t *testing.T, store runtime.Store) {
		limiter := runtime.New(store, quiet, runtime.WithFailurePolicy(runtime.FailLocal))
		defer func() { _ = limiter.Close() }()
		d := taken(t, limiter, (&runtime.Rule{Name: "rate", Window: time.Hour, Max: 10}).Limit(key("k")), permitRule(3).Limit(key("k")))
		for _, other := range []*runtime.Limiter{runtime.New(store, quiet), runtime.New(nil, quiet)} {
			for _, err := range []error{other.Settle(t.Context(), d, 0), other.Refund(t.Context(), d)} {
				wantError(t, "by another limiter", err, runtime.ErrOtherLimiter)
			}
			other.SettleLater(t.Context(), d, 0)
		}
		time.Sleep(5 * time.Hour) // the permit is renewed
		equal(t, "in flight", bridge.LimiterOf(limiter).Permits()["permits"], 1)
		settled(t, limiter, d)
		equal(t, "in flight at the end", bridge.LimiterOf(limiter).Permits()["permits"], 0)
		wantError(t, "again", limiter.Refund(t.Context(), d), runtime.ErrSettled)
	})
}

// What charged nothing is settled and refunded to no effect, any number of times. A charge
// is given back also beside limits that charged nothing, and under a key that is none.
func TestSettleUncharged(t *testing.T) {
	t.Parallel()
	limiter := inMemory(runtime.WithFailurePolicy(runtime.FailLocal))
	rule := perHour(1)
	a, free, invalid := rule.Limit(nil), rule.Limit(key("free")).WithCost(0), rule.Limit(runtime.NewKey().AddInvalid("none"))
	first := taken(t, limiter, a)
	over, _ := refused(t, limiter, a)
	for name, d := range map[string]runtime.Decision{
		"zero": {}, "refused": over, "not decided": taken(t, runtime.New(broken(), quiet), a), "at no cost": taken(t, limiter, free),
	} {
		for range 3 {
			if err := errors.Join(limiter.Refund(t.Context(), d), limiter.Settle(t.Context(), d, 5)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		wantLeft(t, limiter, a, 0)
	}
	// Without a cost a decision is not used up.
	settled(t, limiter, first)
	settled(t, limiter, first, -1)
	refunded(t, limiter, first)
	for _, limits := range [][]runtime.Limit{{a, free}, {free, a}, {a}, {invalid}, {invalid}} {
		refunded(t, limiter, taken(t, limiter, limits...))
	}
	wantLeft(t, limiter, a, 1)
}

// testRefundAfterTheCaller wants a refund to be made also when its caller's deadline has
// passed or it was cancelled.
func testRefundAfterTheCaller(t *testing.T, replica replicas) {
	limiter := replica()
	limit := perHour(20).Limit(key("k"))
	for i := range 20 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		d, err := limiter.Take(ctx, limit)
		ok(t, err)
		cancel()
		if i%2 == 0 {
			ctx, cancel = context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
			defer cancel()
		}
		ok(t, limiter.Refund(ctx, d))
	}
	wantLeft(t, limiter, limit, 20)
}

// A refund keeps the values of its caller's context, and gets SettleTimeout on a
// store that does not end by itself.
func TestSettleTimeout(t *testing.T) {
	bubble(t, func(t *testing.T) {
		type name struct{}
		store := newFake()
		var got any
		store.settle = func(ctx context.Context, _ []terms.Charge) error {
			got = ctx.Value(name{})
			<-ctx.Done()
			return ctx.Err()
		}
		limiter := runtime.New(store, quiet)
		d := taken(t, limiter, wide.Limit(nil))
		ctx, cancel := context.WithTimeout(context.WithValue(context.Background(), name{}, "value"), time.Millisecond)
		defer cancel()
		var err error
		took := elapsed(func() { err = limiter.Refund(ctx, d) })
		if took != runtime.SettleTimeout || !errors.Is(err, context.DeadlineExceeded) || got != "value" {
			t.Errorf("got %v after %v; the store got the value %v", err, took, got)
		}
	})
}

// A refund gives back what a call was charged and nothing of others, whatever max holds by then:
// also where two limits have one key, or this process alone had a share of one.
func TestRefundUnderAnotherMax(t *testing.T) {
	cases := map[string]func(t *testing.T){}
	for _, algorithm := range append(slices.Clone(algorithms), runtime.Concurrency) {
		for _, local := range []bool{false, true} {
			for _, after := range []int64{0, 1, 4, 100} {
				cases[fmt.Sprint(algorithm, ", local ", local, ", then ", after)] = func(t *testing.T) { refundUnder(t, algorithm, local, after) }
			}
		}
	}
	eachCase(t, cases, func(t *testing.T, try func(*testing.T)) { try(t) })
}

func refundUnder(t *testing.T, algorithm runtime.Algorithm, local bool, after int64) {
	var store runtime.Store = runtime.NewMemoryStore()
	if local {
		store = broken()
	}
	source := new(board)
	limiter := runtime.New(store, quiet, runtime.WithOverrides(source, time.Second), runtime.WithFailurePolicy(runtime.FailLocal), runtime.WithReplicas(2))
	defer limiter.Close()
	r := &runtime.Rule{Name: "r", Prefix: "p", Window: time.Hour, Max: 8, Algorithm: algorithm}
	second, open := *r, *r
	second.Name, open.Name, open.Max = "second", "open", 1000
	if isBucket(r) {
		open.Burst, open.Max = 1000, 1
	}
	used := func() int64 {
		d := taken(t, limiter, open.Limit(nil))
		refunded(t, limiter, d)
		return d.Limit - d.Remaining - 1
	}
	taken(t, limiter, r.Limit(nil))
	for _, limits := range [][]runtime.Limit{
		{r.Limit(nil).WithCost(2)},
		{r.Limit(nil), second.Limit(nil)},
		{r.Limit(nil).WithCost(3).WithMax(4), second.Limit(nil).WithCost(4).WithMax(100)}, // over the lower max
	} {
		d, err := limiter.Take(t.Context(), limits...)
		charged := used()
		source.put(overridesOf(rule.Override{Max: &after}))
		refunded(t, limiter, d)
		equal(t, fmt.Sprintf("of %d used, after a refund (%v)", charged, err), used(), 1)
		source.put(runtime.Overrides{})
	}
}
