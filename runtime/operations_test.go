package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/runtime"
)

func TestTakeEach(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	limiter := inMemory()
	a := &runtime.Rule{Name: "a", Prefix: "a:", Window: time.Hour, Max: 2, Wait: time.Hour}
	b := &runtime.Rule{Name: "b", Prefix: "b:", Window: time.Hour, Max: 5}
	outcomes := limiter.TakeEach(ctx,
		a.Limit(key("k")),
		b.Limit(key("k")).WithCost(-1), // fails alone
		a.Limit(key("k")),
		b.Limit(key("k")).WithCost(6), // never
		a.Limit(key("k")),             // one too many, and does not wait
		b.Limit(key("k")).WithCost(4),
		a.Limit(key("l")),
		b.Limit(key("k")).WithCost(0),
		b.Limit(key("k")).WithCost(2),
		b.Limit(key("k")),
	)
	var got []string
	for _, o := range outcomes {
		if (o.Err == nil) != o.Allowed {
			t.Errorf("allowed %v and error %v", o.Allowed, o.Err)
		}
		switch {
		case errors.Is(o.Err, runtime.ErrCostExceedsLimit):
			got = append(got, "never")
		case errors.Is(o.Err, runtime.ErrLimited):
			got = append(got, "limited")
		case errors.Is(o.Err, runtime.ErrInvalidLimit):
			got = append(got, "invalid")
		default:
			got = append(got, fmt.Sprintf("%s%d", o.Rule, o.Remaining))
		}
	}
	want := []string{"a1", "invalid", "a0", "never", "limited", "b1", "a1", "0", "limited", "b0"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	// An outcome can be refunded by itself.
	refunded(t, limiter, outcomes[5].Decision, b.Limit(key("k")).WithCost(4))
	wantLeft(t, limiter, b.Limit(key("k")), 4)
	if got := limiter.TakeEach(ctx); len(got) != 0 {
		t.Errorf("no limits: got %v", got)
	}
}

func TestRefundSeveralLimits(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	limiter := inMemory()
	rule := func(name string, max int64) *runtime.Rule {
		return &runtime.Rule{Name: name, Prefix: name + ":", Window: time.Hour, Max: max}
	}
	a, b, hidden := rule("a", 5), rule("b", 9), rule("hidden", 1)
	hidden.Mode = runtime.ModeShadow
	limits := []runtime.Limit{
		a.Limit(key("k")).WithCost(2), a.Limit(key("none")).WithCost(0), hidden.Limit(nil).WithCost(1), b.Limit(key("k")).WithCost(3),
	}
	left := func(want ...int64) {
		t.Helper()
		for i, rule := range []*runtime.Rule{a, b, hidden} {
			k := key("k")
			if rule == hidden {
				k = nil
			}
			wantLeft(t, limiter, rule.Limit(k), want[i])
		}
	}
	first := taken(t, limiter, limits...)
	left(3, 6, 0)
	second, err := limiter.Take(ctx, limits...) // the shadow has no room for it
	if err != nil {
		t.Fatal(err)
	}
	left(1, 3, 0)
	for _, want := range []error{nil, runtime.ErrSettled} {
		if err := limiter.Refund(ctx, second, limits...); err != want {
			t.Fatalf("got %v, want %v", err, want)
		}
		left(3, 6, 0) // what was not charged does not come back
	}
	denied, err := limiter.Take(ctx, a.Limit(key("k")).WithCost(4), b.Limit(key("k")))
	if err == nil {
		t.Fatal("not denied")
	}
	refunded(t, limiter, denied, a.Limit(key("k")).WithCost(4), b.Limit(key("k")))
	left(3, 6, 0)
	refunded(t, limiter, first, limits...)
	left(5, 9, 1)
}

func TestContextCancelledBefore(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, policy := range []runtime.FailurePolicy{runtime.FailOpen, runtime.FailClosed, runtime.FailLocal} {
		limiter := inMemory(runtime.WithFailurePolicy(policy))
		limit := (&runtime.Rule{Name: "r", Window: time.Hour, Max: 1}).Limit(nil)
		if d, err := limiter.Take(ctx, limit); err != context.Canceled || d.Allowed {
			t.Errorf("%v: got %+v, %v", policy, d, err)
		}
		if o := limiter.TakeEach(ctx, limit)[0]; o.Err != context.Canceled {
			t.Errorf("%v: take each: got %+v", policy, o)
		}
		wantLeft(t, limiter, limit, 1)
	}
}

// admittedOf returns how many of the calls of 64 goroutines the limiters admit
// between them.
func admittedOf(t *testing.T, limit runtime.Limit, limiters ...*runtime.Limiter) int64 {
	t.Helper()
	var admitted atomic.Int64
	var wait sync.WaitGroup
	for i := range 64 {
		wait.Go(func() {
			for range 5 {
				_, err := limiters[i%len(limiters)].Take(context.Background(), limit)
				switch {
				case err == nil:
					admitted.Add(1)
				case !errors.Is(err, runtime.ErrLimited):
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	return admitted.Load()
}
