package runtime_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// TestSameKey has a call name one key twice, as key=#from and key=#to do under one prefix
// when both are equal. It costs both, in every algorithm and store, whatever else it
// costs, and gives back both.
func TestSameKey(t *testing.T) {
	t.Parallel()
	stores := map[string]runtime.Store{"memory": runtime.NewMemoryStore()}
	stores["redis"] = runtime.NewRedisStore(redistest.Start(t).Client(t), patient)
	for name, rule := range serverRules(time.Hour, 20) {
		if rule.Block > 0 || rule.Wait > 0 || rule.Lease > 0 {
			continue
		}
		from, to := *rule, *rule
		from.Prefix, to.Prefix, to.Name = name+":", name+":", rule.Name+" 2"
		for storeName, store := range stores {
			t.Run(name+" "+storeName, func(t *testing.T) {
				t.Parallel()
				limiter := runtime.New(store, quiet, closed)
				defer func() { _ = limiter.Close() }()
				other := from.Limit(key("other"))
				limits := []runtime.Limit{from.Limit(key("k")), other, to.Limit(key("k")).WithCost(3)}
				d := taken(t, limiter, limits...)
				if n, o := left(t, limiter, limits[0]), left(t, limiter, other); n != 16 || o != 19 {
					t.Errorf("left %d and %d", n, o)
				}
				refunded(t, limiter, d, limits...)
				if n := left(t, limiter, limits[0]); n != 20 {
					t.Errorf("left %d when it was given back", n)
				}
				// The lower max holds.
				low := []runtime.Limit{from.Limit(key("low")), to.Limit(key("low")).WithMax(4)}
				first, second := taken(t, limiter, low...), taken(t, limiter, low...)
				if d, err := limiter.Take(t.Context(), low...); !errors.Is(err, runtime.ErrLimited) || d.Limit != 4 && rule.Burst == 0 {
					t.Errorf("got %+v, %v", d, err)
				}
				for _, d := range []runtime.Decision{first, second} {
					settled(t, limiter, d, low...)
				}
				// A key that is named twice makes no call impossible, and one that costs too
				// much stays so.
				one := []runtime.Limit{from.Limit(key("one")).WithMax(1), to.Limit(key("one")).WithMax(1)}
				d = taken(t, limiter, one...)
				refunded(t, limiter, d, one...)
				if n := left(t, limiter, one[0]); n != 1 {
					t.Errorf("left %d of one", n)
				}
				if _, err := limiter.Take(t.Context(), from.Limit(key("one")), to.Limit(key("one")).WithCost(21)); !errors.Is(err, runtime.ErrCostExceedsLimit) {
					t.Errorf("above the max: %v", err)
				}
			})
		}
	}
}

// Limits that count in different ways have no meaning together on one key.
func TestSameKeyOfOtherTerms(t *testing.T) {
	t.Parallel()
	limiter := inMemory()
	one := &runtime.Rule{Name: "one", Prefix: "p:", Window: time.Hour, Max: 5}
	for i, change := range []func(*runtime.Rule){
		func(r *runtime.Rule) { r.Window = time.Minute },
		func(r *runtime.Rule) { r.Resolution = time.Second },
	} {
		two := *one
		two.Name = fmt.Sprint("two", i)
		change(&two)
		if _, err := limiter.Take(t.Context(), one.Limit(nil), two.Limit(nil)); !errors.Is(err, runtime.ErrInvalidLimit) {
			t.Errorf("change %d: %v", i, err)
		}
	}
	if got := left(t, limiter, one.Limit(nil)); got != 5 {
		t.Errorf("left %d", got)
	}
}
