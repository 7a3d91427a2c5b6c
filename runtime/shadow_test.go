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
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// shadowRules returns a rule of each kind that admits one call an hour, in shadow mode.
func shadowRules() []runtime.Rule {
	rules := []runtime.Rule{
		{},
		{Storage: runtime.StoragePacked},
		{Algorithm: runtime.SlidingCounter},
		{Algorithm: runtime.SlidingCounter, Buckets: rule.LayeredBuckets(6, 10)},
		{Algorithm: runtime.FixedWindow},
		{Algorithm: runtime.TokenBucket},
		{Algorithm: runtime.LeakyBucket},
		{Algorithm: runtime.LeakyBucket, Wait: 10 * time.Hour},
		{Wait: 10 * time.Hour},
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
	enforced := (&runtime.Rule{Name: "enforced", Window: time.Hour, Max: 6, Fail: runtime.FailLocal}).Limit(nil)
	for _, rule := range shadowRules() {
		for _, rule.Fail = range []runtime.FailurePolicy{runtime.FailOpen, runtime.FailClosed, runtime.FailLocal} {
			for name, shadow := range map[string]runtime.Limit{
				"valid":         rule.Limit(key("k")),
				"invalid key":   rule.Limit(runtime.NewKey().AddInvalid("nil")),
				"cost above":    rule.Limit(key("k")).WithCost(1 << 50),
				"max 0":         rule.Limit(key("k")).WithMax(0),
				"negative cost": rule.Limit(key("k")).WithCost(-1),
				"negative max":  rule.Limit(key("k")).WithMax(-1),
			} {
				for up, store := range map[string]runtime.Store{"up": runtime.NewMemoryStore(), "down": broken(), "none": nil} {
					synctest.Test(t, func(t *testing.T) {
						limiter, start := runtime.New(store, quiet), time.Now()
						what := fmt.Sprintf("%v, %s, store %s", rule.Fail, name, up)
						for range 3 {
							for _, limits := range [][]runtime.Limit{{shadow}, {shadow, enforced}, {enforced, shadow}} {
								d, err := limiter.Take(t.Context(), limits...)
								if err != nil || !d.Allowed || len(limits) > 1 && d.Rule != "enforced" {
									t.Errorf("%s, one of %d limits: got %+v, %v", what, len(limits), d, err)
								}
							}
							if o := limiter.TakeEach(t.Context(), shadow)[0]; o.Err != nil || !o.Allowed {
								t.Errorf("%s, each: got %+v", what, o)
							}
						}
						refused(t, limiter, shadow, enforced)
						equal(t, what+": waited", time.Since(start), 0)
					})
				}
			}
		}
	}
}

// testShadowVerdicts wants a shadow limit to count and judge the calls that others admit, and to
// say of those that they refuse that they were not charged, whoever has refused them: the store, the
// memory of refusals, or nobody since the cost never fits.
func testShadowVerdicts(t *testing.T, replica replicas) {
	const together = "{verdicts}:" // in one slot, or an answer may be late
	small := &runtime.Rule{Name: "small", Prefix: together + "small:", Window: time.Hour, Max: 1, Mode: runtime.ModeShadow}
	enforced := &runtime.Rule{Name: "enforced", Prefix: together + "enforced:", Window: time.Hour, Max: 5}
	for _, r := range shadowRules() {
		r.Prefix, r.Max = together+r.Name, 3
		if r.Algorithm == runtime.LeakyBucket {
			r.Wait = 0 // for which all would fit
		}
		for name, cost := range map[string]int64{"again": 1, "dearer": 2, "never": 6} {
			var seen recorder[observe.DecisionEvent]
			var told recorder[observe.KeyRefusedEvent]
			l := replica(observing(observe.Observer{
				Decision:   withContext(seen.add),
				KeyRefused: func(_ context.Context, ev observe.KeyRefusedEvent) { told.add(observe.KeyRefusedEvent{Rule: ev.Rule}) },
			}))
			id := key(r.Name + name)
			limits := []runtime.Limit{enforced.Limit(id), r.Limit(id), small.Limit(id).WithCost(2)}
			for range 5 {
				taken(t, l, limits...)
			}
			limits[0] = limits[0].WithCost(cost)
			for range 4 {
				refused(t, l, limits...)
			}
			got := map[string]int{}
			for _, ev := range seen.all() {
				got[ev.Rule+" "+ev.Verdict.String()]++
				if ev.Verdict == observe.VerdictNotCharged && (ev.Source != rule.SourceNone || ev.Remaining != ev.Limit || ev.RetryAfter != 0 || ev.Blocked) {
					t.Errorf("%s, %s: got %+v, want nothing to be said of a call that was refused", r.Name, name, ev)
				}
			}
			same(t, r.Name+", "+name+": verdicts", map[string]int{
				"enforced admitted": 5, "enforced refused": 4, "small shadow_refused": 5, "small not_charged": 4,
				r.Name + " admitted": 3, r.Name + " shadow_refused": 2, r.Name + " not_charged": 4,
			}, got)
			keys := map[string]int{}
			for _, ev := range told.all() {
				keys[ev.Rule]++
			}
			same(t, r.Name+", "+name+": keys of refusals", map[string]int{"enforced": 4, r.Name: 2}, keys)
		}
	}
}

// A shadow queue counts the turns that it makes nobody wait for.
func TestShadowQueueCounts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var seen recorder[observe.Verdict]
		limiter := inMemory(observing(observe.Observer{Decision: withContext(func(ev observe.DecisionEvent) { seen.add(ev.Verdict) })}))
		rule := &runtime.Rule{Name: "q", Window: time.Minute, Max: 1, Algorithm: runtime.LeakyBucket, Wait: 2 * time.Minute, Mode: runtime.ModeShadow}
		equal(t, "waited", elapsed(func() { wantPassing(t, limiter, rule.Limit(nil), 5, 5) }), 0)
		equal(t, "verdicts", fmt.Sprint(seen.all()), "[admitted admitted admitted shadow_refused shadow_refused]")
	})
}

// A caller whose context ends is refused by no shadow limit.
func TestShadowAndEndedContext(t *testing.T) {
	frozen := newFake()
	frozen.take = func(ctx context.Context, _ []terms.Call) error {
		<-ctx.Done()
		return ctx.Err()
	}
	eachCase(t, map[string]runtime.Store{"memory": runtime.NewMemoryStore(), "frozen": frozen}, func(t *testing.T, store runtime.Store) {
		limiter := runtime.New(store, quiet)
		shadow := (&runtime.Rule{Name: "s", Window: time.Hour, Max: 1, Mode: runtime.ModeShadow, Fail: runtime.FailClosed}).Limit(nil)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		for range 2 { // the second when the context has ended
			if d, err := limiter.Take(ctx, shadow); err != nil || !d.Allowed {
				t.Errorf("got %+v, %v", d, err)
			}
			<-ctx.Done()
		}
		if _, err := limiter.Take(ctx, shadow, narrow.Limit(nil)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with an enforced limit: got %v", err)
		}
	})
}

// What calls hold of a limit is not renewed earlier because a shadow limit's is due: refused
// calls are told the same RetryAfter as without it.
func TestShadowRenewals(t *testing.T) {
	eachCase(t, map[string]*runtime.Rule{"permits": permitRule(1), "reservations": reserveRule(1)}, func(t *testing.T, rule *runtime.Rule) {
		for _, beside := range []bool{false, true} {
			limiter, shadow := inMemory(), *rule
			shadow.Name, shadow.Prefix, shadow.Mode = "shadow", "shadow:", runtime.ModeShadow
			if beside {
				taken(t, limiter, shadow.Limit(nil)) // renewed after 10 seconds
			}
			time.Sleep(2 * time.Second)
			taken(t, limiter, rule.Limit(nil)) // renewed after 12 seconds
			time.Sleep(9 * time.Second)
			d, _ := refused(t, limiter, rule.Limit(nil))
			equal(t, fmt.Sprintf("beside a shadow limit: %v: retry after", beside), d.RetryAfter, 21*time.Second)
			ok(t, limiter.Close())
		}
	})
}
