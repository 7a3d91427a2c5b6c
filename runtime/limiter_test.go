package runtime_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rawstore"
	"github.com/rategen/rategen/runtime/rule"
)

// Nothing at all is no reason to panic.
func TestEmptyCalls(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	limiters := withoutStore(closed, runtime.WithObserver(nil))
	limiters["memory"], limiters["no cap"] = inMemory(), inMemory(runtime.WithProcessCap(nil))
	limiters["capped"] = inMemory(runtime.WithProcessCap(&runtime.Rule{Name: "process", Window: time.Hour, Max: 100}))
	for name, limiter := range limiters {
		taken(t, limiter)
		if d, err := limiter.Peek(ctx); err != nil || !d.Allowed {
			t.Errorf("%s: peek: %+v, %v", name, d, err)
		}
		equal(t, name+": outcomes of none", len(limiter.TakeEach(ctx)), 0)
		refusedAs(t, limiter, runtime.ErrInvalidLimit, runtime.Limit{}.WithCost(1))
		for _, nameless := range []runtime.Limit{{}, (&runtime.Rule{Window: time.Hour, Max: 1}).Limit(nil)} {
			refusedAs(t, limiter, runtime.ErrInvalidLimit, perHour(1).Limit(nil), nameless)
			wantError(t, name+": reset", limiter.Reset(ctx, nameless), runtime.ErrInvalidLimit)
		}
		d, _ := limiter.Take(ctx, perHour(100).Limit(nil))
		for _, n := range []int{0, 1, 2 * rule.MaxLimits} { // costs for more limits than there are
			if err := limiter.Settle(ctx, d, make([]int64, n)...); err != nil && n < 2 {
				t.Errorf("%s: settle: %v", name, err)
			}
		}
	}
	store := rawstore.Wrap(runtime.NewMemoryStore())
	for _, calls := range [][]rawstore.Call{nil, {}, {{}}, {{}, {Charges: []rawstore.Charge{}}}} {
		ok(t, errors.Join(store.Take(ctx, calls), store.Peek(ctx, calls)))
	}
	ok(t, errors.Join(store.Settle(ctx, nil), store.Reset(ctx, nil)))
}
