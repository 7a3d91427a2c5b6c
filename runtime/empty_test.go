package runtime_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rawstore"
)

// Nothing at all is no reason to panic.
func TestEmptyCalls(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 100}
	capped := runtime.WithProcessCap(&runtime.Rule{Name: "process", Window: time.Hour, Max: 100})
	for name, limiter := range map[string]*runtime.Limiter{
		"memory": inMemory(), "capped": inMemory(capped),
		"broken": runtime.New(new(brokenStore), quiet, closed), "none": runtime.New(nil, quiet, closed, runtime.WithObserver(nil)),
	} {
		if d, err := limiter.Take(ctx); err != nil || !d.Allowed {
			t.Errorf("%s: take: %+v, %v", name, d, err)
		}
		if d, err := limiter.Peek(ctx); err != nil || !d.Allowed {
			t.Errorf("%s: peek: %+v, %v", name, d, err)
		}
		if outcomes := limiter.TakeEach(ctx); len(outcomes) != 0 {
			t.Errorf("%s: take each: %+v", name, outcomes)
		}
		if _, err := limiter.Take(ctx, runtime.Limit{}.WithCost(1)); !errors.Is(err, runtime.ErrInvalidLimit) {
			t.Errorf("%s: a limit without a rule: %v", name, err)
		}
		if err := limiter.Reset(ctx, runtime.Limit{}); !errors.Is(err, runtime.ErrInvalidLimit) {
			t.Errorf("%s: reset: %v", name, err)
		}
		d, _ := limiter.Take(ctx, rule.Limit(nil))
		many := make([]runtime.Limit, 2*runtime.MaxLimits)
		for i := range many {
			many[i] = rule.Limit(nil)
		}
		for _, limits := range [][]runtime.Limit{nil, {{}}, many} { // fewer, and more, than were charged
			if err := limiter.Refund(ctx, d, limits...); err != nil && !errors.Is(err, runtime.ErrNotCharged) {
				t.Errorf("%s: refund: %v", name, err)
			}
		}
	}
	store := runtime.NewMemoryStore()
	for _, calls := range [][]rawstore.Call{nil, {}, {{}}, {{}, {Charges: []rawstore.Charge{}}}} {
		if err := errors.Join(rawstore.On(store).Take(ctx, calls), rawstore.On(store).Peek(ctx, calls)); err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(rawstore.On(store).Settle(ctx, nil), rawstore.On(store).Reset(ctx, nil)); err != nil {
		t.Error(err)
	}
}
