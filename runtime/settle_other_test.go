package runtime_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
)

// TestSettleOtherLimits settles decisions by fewer, more, other and reordered limits, and
// by another limiter. Each is an error that changes nothing: the right limits still settle
// the decision, once.
func TestSettleOtherLimits(t *testing.T) {
	t.Parallel()
	rate := &runtime.Rule{Name: "rate", Window: time.Hour, Max: 10}
	daily := &runtime.Rule{Name: "daily", Window: 24 * time.Hour, Max: 10, Algorithm: runtime.TokenBucket}
	permit := permitRule(3)
	a, b, c := rate.Limit(key("k")).WithCost(2), daily.Limit(key("k")), permit.Limit(key("k"))
	taken3 := []runtime.Limit{a, b, c}
	wrong := map[string][]runtime.Limit{
		"none":         {},
		"fewer":        {a, b},
		"first":        {a},
		"last":         {c},
		"reordered":    {b, a, c},
		"rotated":      {c, a, b},
		"another key":  {a, daily.Limit(key("l")), c},
		"another rule": {a, rate.Limit(key("k")), c},
		"another cost": {a.WithCost(3), b, c},
		"no cost":      {a, b, c.WithCost(0)},
		"highest cost": {a, b, c.WithCost(runtime.MaxCount)},
		"no rule":      {a, {}, c},
	}
	for name, limits := range wrong {
		for _, source := range []string{"store", "local", "other limiter"} {
			synctest.Test(t, func(t *testing.T) {
				var store runtime.Store = runtime.NewMemoryStore()
				if source == "local" {
					store = new(brokenStore)
				}
				limiter := runtime.New(store, quiet, runtime.WithFailurePolicy(runtime.FailLocal))
				defer func() { _ = limiter.Close() }()
				d := taken(t, limiter, taken3...)
				settling, limits := limiter, limits
				if source == "other limiter" {
					settling, limits = runtime.New(store, quiet), taken3
				}
				if err := settling.Settle(t.Context(), d, limits...); !errors.Is(err, runtime.ErrNotCharged) {
					t.Errorf("%s, %s: settle: %v", name, source, err)
				}
				if err := settling.Refund(t.Context(), d, limits...); !errors.Is(err, runtime.ErrNotCharged) {
					t.Errorf("%s, %s: refund: %v", name, source, err)
				}
				settling.SettleLater(t.Context(), d, limits...)
				time.Sleep(5 * time.Hour) // the permit is renewed
				if got := limiter.InFlight()["permits"]; got != 1 {
					t.Errorf("%s, %s: %d in flight", name, source, got)
				}
				settled(t, limiter, d, taken3...)
				if got := limiter.InFlight()["permits"]; got != 0 {
					t.Errorf("%s, %s: %d in flight at the end", name, source, got)
				}
				if err := limiter.Refund(t.Context(), d, taken3...); !errors.Is(err, runtime.ErrSettled) {
					t.Errorf("%s, %s: again: %v", name, source, err)
				}
			})
		}
	}
}

// A decision may be settled by more limits than were charged: those that were switched
// off, free or left out when it was made.
func TestSettleUncharged(t *testing.T) {
	t.Parallel()
	limiter := inMemory()
	rate := &runtime.Rule{Name: "rate", Window: time.Hour, Max: 10}
	free := rate.Limit(key("free")).WithCost(0)
	a := rate.Limit(key("k"))
	for _, limits := range [][]runtime.Limit{{a, free}, {free, a}, {a}} {
		d := taken(t, limiter, limits...)
		refunded(t, limiter, d, limits...)
	}
	if got := left(t, limiter, a); got != 10 {
		t.Errorf("left %d", got)
	}
	if err := limiter.Settle(t.Context(), runtime.Decision{}, a.WithSettled(5)); err != nil || left(t, limiter, a) != 10 {
		t.Errorf("a decision that charged nothing: %v, left %d", err, left(t, limiter, a))
	}
}
