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

// A frozenStore answers when its caller's context ends.
type frozenStore struct{ brokenStore }

func (s *frozenStore) Take(ctx context.Context, _ []terms.Call) error {
	<-ctx.Done()
	return ctx.Err()
}

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
// answers. An enforced limit beside it decides as if it was alone.
func TestShadowNeverHarms(t *testing.T) {
	t.Parallel()
	policies := []runtime.FailurePolicy{runtime.FailOpen, runtime.FailClosed, runtime.FailLocal}
	stores := map[string]func() runtime.Store{
		"up":   func() runtime.Store { return runtime.NewMemoryStore() },
		"down": func() runtime.Store { return new(brokenStore) },
		"none": func() runtime.Store { return nil },
	}
	limits := map[string]func(*runtime.Rule) runtime.Limit{
		"valid":         func(r *runtime.Rule) runtime.Limit { return r.Limit(key("k")) },
		"invalid key":   func(r *runtime.Rule) runtime.Limit { return r.Limit(runtime.NewKey().AddInvalid("nil")) },
		"cost above":    func(r *runtime.Rule) runtime.Limit { return r.Limit(key("k")).WithCost(1 << 50) },
		"max 0":         func(r *runtime.Rule) runtime.Limit { return r.Limit(key("k")).WithMax(0) },
		"negative cost": func(r *runtime.Rule) runtime.Limit { return r.Limit(key("k")).WithCost(-1) },
		"negative max":  func(r *runtime.Rule) runtime.Limit { return r.Limit(key("k")).WithMax(-1) },
	}
	for _, rule := range shadowRules() {
		for _, shadowPolicy := range policies {
			for storeName, store := range stores {
				for limitName, limit := range limits {
					rule := rule
					rule.Fail = shadowPolicy
					name := fmt.Sprintf("%v wait %v, %v, store %s, %s", rule.Algorithm, rule.Wait, rule.Fail, storeName, limitName)
					synctest.Test(t, func(t *testing.T) { shadowAlone(t, name, store(), limit(&rule)) })
					for _, policy := range policies {
						for _, first := range []bool{true, false} {
							synctest.Test(t, func(t *testing.T) { shadowMixed(t, name, store, limit(&rule), policy, first) })
						}
					}
				}
			}
		}
	}
}

func shadowAlone(t *testing.T, name string, store runtime.Store, limit runtime.Limit) {
	limiter := runtime.New(store, quiet, runtime.WithFailurePolicy(runtime.FailClosed))
	start := time.Now()
	for range 3 {
		if d, err := limiter.Take(context.Background(), limit); err != nil || !d.Allowed {
			t.Errorf("%s: got %+v, %v", name, d, err)
		}
		if o := limiter.TakeEach(context.Background(), limit)[0]; o.Err != nil || !o.Allowed {
			t.Errorf("%s: each: got %+v", name, o)
		}
	}
	if waited := time.Since(start); waited != 0 {
		t.Errorf("%s: waited %v", name, waited)
	}
}

func shadowMixed(t *testing.T, name string, store func() runtime.Store, shadow runtime.Limit, policy runtime.FailurePolicy, first bool) {
	enforced := (&runtime.Rule{Name: "enforced", Window: time.Hour, Max: 2, Fail: policy}).Limit(key("k"))
	mixed, alone := runtime.New(store(), quiet), runtime.New(store(), quiet)
	start := time.Now()
	for i := range 3 {
		want, wantErr := alone.Take(context.Background(), enforced)
		limits := []runtime.Limit{enforced, shadow}
		if first {
			limits = []runtime.Limit{shadow, enforced}
		}
		got, err := mixed.Take(context.Background(), limits...)
		if fmt.Sprint(err) != fmt.Sprint(wantErr) || got.Allowed != want.Allowed || got.Rule != want.Rule || got.Remaining != want.Remaining {
			t.Errorf("%s, beside %v, call %d: got %+v, %v, want %+v, %v", name, policy, i, got, err, want, wantErr)
		}
	}
	if waited := time.Since(start); waited != 0 {
		t.Errorf("%s, beside %v: waited %v", name, policy, waited)
	}
}

// A shadow queue counts the turns that it makes nobody wait for.
func TestShadowQueueCounts(t *testing.T) {
	t.Parallel()
	rule := &runtime.Rule{Name: "q", Window: time.Minute, Max: 1, Algorithm: runtime.LeakyBucket, Wait: 2 * time.Minute, Mode: runtime.ModeShadow}
	var told recorder[runtime.Verdict]
	synctest.Test(t, func(t *testing.T) {
		limiter := inMemory(observing(runtime.Observer{
			Decision: withContext(func(ev runtime.DecisionEvent) { told.add(ev.Verdict) })}))
		start := time.Now()
		if got := passing(t, limiter, rule.Limit(nil), 5); got != 5 || time.Since(start) != 0 {
			t.Errorf("%d passed in %v, want all at once", got, time.Since(start))
		}
	})
	if got := fmt.Sprint(told.all()); got != "[admitted admitted admitted shadow_denied shadow_denied]" {
		t.Errorf("told %s", got)
	}
}

// A caller whose context ends is refused by no shadow limit.
func TestShadowAndEndedContext(t *testing.T) {
	t.Parallel()
	shadow := &runtime.Rule{Name: "s", Window: time.Hour, Max: 1, Mode: runtime.ModeShadow, Fail: runtime.FailClosed}
	enforced := &runtime.Rule{Name: "e", Window: time.Hour, Max: 1}
	synctest.Test(t, func(t *testing.T) {
		for _, store := range []runtime.Store{runtime.NewMemoryStore(), new(frozenStore)} {
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
