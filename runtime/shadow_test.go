package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// shadowRules returns a rule of each kind that admits one call an hour, in
// shadow mode.
func shadowRules() []runtime.Rule {
	rules := []runtime.Rule{
		{Algorithm: runtime.SlidingLog},
		{Algorithm: runtime.SlidingLog, Storage: runtime.StoragePacked},
		{Algorithm: runtime.SlidingCounter},
		{Algorithm: runtime.SlidingCounter, Buckets: runtime.LayeredBuckets(6, 10)},
		{Algorithm: runtime.FixedWindow},
		{Algorithm: runtime.TokenBucket},
		{Algorithm: runtime.LeakyBucket},
		{Algorithm: runtime.LeakyBucket, Wait: 10 * time.Hour},
		{Algorithm: runtime.SlidingLog, Wait: 10 * time.Hour},
	}
	for i := range rules {
		rules[i].Name, rules[i].Window, rules[i].Max, rules[i].Mode = fmt.Sprint("shadow", i), time.Hour, 1, runtime.ModeShadow
	}
	return rules
}

// A shadow limit neither delays nor refuses a call, whatever its algorithm, its
// failure policy, its key and its numbers are, and whether or not the store
// answers. That it changes nothing for the limits beside it package crossing shows.
func TestShadowNeverHarms(t *testing.T) {
	t.Parallel()
	stores := map[string]func() runtime.Store{
		"up":   func() runtime.Store { return runtime.NewMemoryStore() },
		"down": func() runtime.Store { return new(brokenStore) },
		"none": func() runtime.Store { return nil },
	}
	shadows := map[string]func(*runtime.Rule) runtime.Limit{
		"valid":         func(r *runtime.Rule) runtime.Limit { return r.Limit(key("k")) },
		"invalid key":   func(r *runtime.Rule) runtime.Limit { return r.Limit(runtime.NewKey().AddInvalid("nil")) },
		"cost above":    func(r *runtime.Rule) runtime.Limit { return r.Limit(key("k")).WithCost(1 << 50) },
		"max 0":         func(r *runtime.Rule) runtime.Limit { return r.Limit(key("k")).WithMax(0) },
		"negative cost": func(r *runtime.Rule) runtime.Limit { return r.Limit(key("k")).WithCost(-1) },
		"negative max":  func(r *runtime.Rule) runtime.Limit { return r.Limit(key("k")).WithMax(-1) },
	}
	enforced := (&runtime.Rule{Name: "enforced", Window: time.Hour, Max: 6, Fail: runtime.FailLocal}).Limit(nil)
	for _, rule := range shadowRules() {
		for _, policy := range []runtime.FailurePolicy{runtime.FailOpen, runtime.FailClosed, runtime.FailLocal} {
			for storeName, store := range stores {
				for name, shadow := range shadows {
					synctest.Test(t, func(t *testing.T) {
						rule.Fail = policy
						limiter, start := runtime.New(store(), quiet), time.Now()
						for range 3 {
							for _, limits := range [][]runtime.Limit{{shadow(&rule)}, {shadow(&rule), enforced}, {enforced, shadow(&rule)}} {
								d, err := limiter.Take(t.Context(), limits...)
								if err != nil || !d.Allowed || len(limits) > 1 && d.Rule != "enforced" {
									t.Errorf("%v, %s, store %s, one of %d limits: got %+v, %v", policy, name, storeName, len(limits), d, err)
								}
							}
							if o := limiter.TakeEach(t.Context(), shadow(&rule))[0]; o.Err != nil || !o.Allowed {
								t.Errorf("%v, %s, store %s, each: got %+v", policy, name, storeName, o)
							}
						}
						denied(t, limiter, shadow(&rule), enforced)
						equal(t, fmt.Sprint(policy, ", ", name, ", store ", storeName, ": waited"), time.Since(start), 0)
					})
				}
			}
		}
	}
}

// A shadow queue counts the turns that it makes nobody wait for.
func TestShadowQueueCounts(t *testing.T) {
	t.Parallel()
	rule := &runtime.Rule{Name: "q", Window: time.Minute, Max: 1, Algorithm: runtime.LeakyBucket, Wait: 2 * time.Minute, Mode: runtime.ModeShadow}
	var seen recorder[runtime.Verdict]
	synctest.Test(t, func(t *testing.T) {
		limiter := inMemory(observing(runtime.Observer{
			Decision: withContext(func(ev runtime.DecisionEvent) { seen.add(ev.Verdict) })}))
		start := time.Now()
		if got := passing(t, limiter, rule.Limit(nil), 5); got != 5 || time.Since(start) != 0 {
			t.Errorf("%d passed in %v, want all at once", got, time.Since(start))
		}
	})
	equal(t, "verdicts", fmt.Sprint(seen.all()), "[admitted admitted admitted shadow_denied shadow_denied]")
}

// A caller whose context ends is refused by no shadow limit.
func TestShadowAndEndedContext(t *testing.T) {
	t.Parallel()
	shadow := &runtime.Rule{Name: "s", Window: time.Hour, Max: 1, Mode: runtime.ModeShadow, Fail: runtime.FailClosed}
	enforced := &runtime.Rule{Name: "e", Window: time.Hour, Max: 1}
	synctest.Test(t, func(t *testing.T) {
		frozen := newFake()
		frozen.take = func(ctx context.Context, _ []terms.Call) error {
			<-ctx.Done()
			return ctx.Err()
		}
		for _, store := range []runtime.Store{runtime.NewMemoryStore(), frozen} {
			limiter := runtime.New(store, quiet)
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			for range 2 { // the second when the context has ended
				if d, err := limiter.Take(ctx, shadow.Limit(nil)); err != nil || !d.Allowed {
					t.Errorf("%T: got %+v, %v", store, d, err)
				}
				<-ctx.Done()
			}
			if _, err := limiter.Take(ctx, shadow.Limit(nil), enforced.Limit(nil)); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%T: with an enforced limit: got %v", store, err)
			}
		}
	})
}

// What calls hold of a limit is not renewed earlier because a shadow limit's is due: denied
// calls are told the same RetryAfter as without it.
func TestShadowRenewals(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]*runtime.Rule{"permits": permitRule(1), "reservations": reserveRule(1)} {
		for _, beside := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", beside a shadow limit: ", beside), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					limiter, shadow := inMemory(), *rule
					shadow.Name, shadow.Prefix, shadow.Mode = "shadow", "shadow:", runtime.ModeShadow
					if beside {
						taken(t, limiter, shadow.Limit(nil)) // renewed after 10 seconds
					}
					time.Sleep(2 * time.Second)
					taken(t, limiter, rule.Limit(nil)) // renewed after 12 seconds
					time.Sleep(9 * time.Second)
					if d, _ := denied(t, limiter, rule.Limit(nil)); d.RetryAfter != 21*time.Second {
						t.Errorf("retry after %v, want 21s", d.RetryAfter)
					}
					ok(t, limiter.Close())
				})
			})
		}
	}
}
