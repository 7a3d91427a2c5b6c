package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
	"github.com/rategen/rategen/runtime/wrapper"
)

type keys = map[string]rule.KeyOverride

func maximum(n int64) rule.KeyOverride { return rule.KeyOverride{Max: &n} }

// What is changed in each field holds for the calls after the next look, for a key over
// its rule and for a rule over what was declared. What was declared holds again when it
// is taken back.
func TestOverrides(t *testing.T) {
	t.Parallel()
	on, off := rule.KeyOverride{Enabled: new(true)}, rule.KeyOverride{Enabled: new(false)}
	long := strings.Repeat("long", 100)
	for _, test := range []struct {
		name string
		to   runtime.Overrides
		max  int64          // of the call, 0: the rule's
		want map[string]int // of 10 calls, where 4 are declared
	}{
		{"nothing", runtime.Overrides{}, 0, map[string]int{"a": 4}},
		{"another rule", runtime.Overrides{Rules: map[string]rule.Override{"other": {Max: new(int64(9))}}}, 0, map[string]int{"a": 4}},
		{"max raised", overridesOf(rule.Override{Max: new(int64(6))}), 0, map[string]int{"a": 6}},
		{"max lowered", overridesOf(rule.Override{Max: new(int64(2))}), 0, map[string]int{"a": 2}},
		{"max 0", overridesOf(rule.Override{Max: new(int64(0))}), 0, map[string]int{"a": 0}},
		{"max of the call's own", overridesOf(rule.Override{Max: new(int64(6))}), 3, map[string]int{"a": 6}},
		{"a max of the call's own that makes no sense", overridesOf(rule.Override{Max: new(int64(6))}), -3, map[string]int{"a": 6}},
		{"window, and a max of the call's own", overridesOf(rule.Override{Window: new(time.Minute)}), 3, map[string]int{"a": 3}},
		{"shadow", overridesOf(rule.Override{Mode: new(runtime.ModeShadow)}), 0, map[string]int{"a": 10}},
		{"off", overridesOf(rule.Override{Enabled: new(false)}), 0, map[string]int{"a": 10}},
		{"off, of a call that makes no sense", overridesOf(rule.Override{Enabled: new(false)}), -3, map[string]int{"a": 10}},
		{"on", overridesOf(rule.Override{Enabled: new(true)}), 0, map[string]int{"a": 4}},
		{"all off", runtime.Overrides{Enabled: new(false)}, 0, map[string]int{"a": 10}},
		{"all on", runtime.Overrides{Enabled: new(true)}, 0, map[string]int{"a": 4}},

		{"quota", overridesOf(rule.Override{Keys: keys{"a": maximum(6), "b": maximum(2)}}), 0, map[string]int{"a": 6, "b": 2, "c": 4, "aa": 4}},
		{"allow list", overridesOf(rule.Override{Keys: keys{"a": off}}), 0, map[string]int{"a": 10, "b": 4}},
		{"block list", overridesOf(rule.Override{Keys: keys{"a": maximum(0)}}), 0, map[string]int{"a": 0, "b": 4}},
		{"nobody but", overridesOf(rule.Override{Max: new(int64(0)), Keys: keys{"a": maximum(5), "b": off}}), 0, map[string]int{"a": 5, "b": 10, "c": 0}},
		{"off but", overridesOf(rule.Override{Enabled: new(false), Keys: keys{"a": on, "b": maximum(2)}}), 0, map[string]int{"a": 4, "b": 10, "c": 10}},
		{"longest", overridesOf(rule.Override{Keys: keys{"*": maximum(1), "p*": maximum(2), "premium-*": maximum(3), "premium-7": maximum(5), "premium-7*": maximum(6)}}),
			0, map[string]int{"a": 1, "p": 2, "premium": 2, "premium-": 3, "premium-6": 3, "premium-7": 5, "premium-77": 6}},
		{"shadow of keys", overridesOf(rule.Override{Keys: keys{"a*": {Mode: new(runtime.ModeShadow)}}}), 0, map[string]int{"a1": 10, "b": 4}},
		{"all but one in shadow mode", overridesOf(rule.Override{Mode: new(runtime.ModeShadow), Keys: keys{"a": {Mode: new(runtime.ModeEnforce)}}}), 0, map[string]int{"a": 4, "b": 10}},
		{"the rule's max stays", overridesOf(rule.Override{Max: new(int64(7)), Keys: keys{"a": {Window: new(time.Minute)}}}), 0, map[string]int{"a": 7, "b": 7}},
		{"a star of the key's own", overridesOf(rule.Override{Keys: keys{"all%2A": maximum(2)}}), 0, map[string]int{"all*": 2, "all": 4, "all*x": 4}},
		{"a key that is hashed", overridesOf(rule.Override{Keys: keys{long: maximum(1), long + "-*": maximum(2)}}), 0, map[string]int{long: 1, long + "-x": 2, long + "x": 4}},
		{"the key that is empty", overridesOf(rule.Override{Keys: keys{"": maximum(1)}}), 0, map[string]int{"": 1, "a": 4}},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := perHour(4)
			limiter, board := following(t, time.Second)
			wantPassing(t, limiter, r.Limit(key("before")), 10, 4)
			board.put(test.to)
			for id, want := range test.want {
				limit := r.Limit(key(id))
				if test.max != 0 {
					limit = limit.WithMax(test.max)
				} else if d, err := limiter.Peek(t.Context(), limit); err != nil || want < 10 && d.Limit != int64(want) || d.Allowed != (want > 0) {
					t.Errorf("%s, %.20q: peek %+v, %v, want a limit of %d", test.name, id, d, err, want)
				}
				equal(t, fmt.Sprintf("%s, %.20q: admitted", test.name, id), passing(t, limiter, limit, 10), want)
				_, err := limiter.Take(t.Context(), limit.WithCost(0))
				equal(t, fmt.Sprintf("%s, %.20q: admitted at no cost", test.name, id), err == nil, want > 0)
			}
			equal(t, test.name+": enabled", limiter.Enabled(), test.name != "all off")
			board.put(runtime.Overrides{})
			wantPassing(t, limiter, r.Limit(key("after")), 10, 4)
		})
	}
}

// A program that makes a rule for every call is served, and fills neither its memory with
// them nor its log.
func TestRulesWithoutEnd(t *testing.T) {
	t.Parallel()
	var out lines
	limiter := runtime.New(broken(), out.Logger(), runtime.WithFailurePolicy(runtime.FailLocal), runtime.WithReplicas(2),
		overridden(overridesOf(rule.Override{Max: new(int64(2))})))
	defer limiter.Close()
	for i := range int64(10_500) {
		r := &runtime.Rule{Name: "r", Window: time.Hour, Max: 10, Algorithm: runtime.FixedWindow, Adaptive: always(1)}
		limit := r.Limit(runtime.NewKey().AddInt(i))
		wrapper.Measure(limiter, r, time.Now())
		wantPassing(t, limiter, limit, 2, 1)
		equal(t, "factor", bridge.LimiterOf(limiter).Factor(r), 1)
	}
	equal(t, "rules are kept in mind", limiter.KnownRules(), 10_000)
	// Each known rule has its two lines, the others share theirs.
	between(t, "lines", strings.Count(out.String(), "\n"), 1, 2*10_000+1000)
}

// A source may change what it has handed out, in its next call.
func TestOverridesAreCopied(t *testing.T) {
	bubble(t, func(t *testing.T) {
		most, turn := new(int64(0)), 0
		rules := map[string]rule.Override{"r": {Max: most}}
		limiter := inMemory(runtime.WithOverrides(runtime.OverrideFunc(func(context.Context) (runtime.Overrides, error) {
			*most = []int64{2, 3, -5, -6, 4, 4}[turn]
			turn++
			return runtime.Overrides{Rules: rules}, nil
		}), time.Second))
		defer limiter.Close()
		for i, want := range []int{2, 3, 3, 3, 4} {
			// A rule that is met for the first time takes its override as it was.
			r := perHour(5)
			wantPassing(t, limiter, r.Limit(key(fmt.Sprint(i))), 10, want)
			time.Sleep(time.Second)
			synctest.Wait()
		}
	})
}

// A charge is given back to where it was made, whatever became of its rule, and a reset
// finds the key that an overridden rule counts under.
func TestRefundAfterOverride(t *testing.T) {
	eachCase(t, map[string]rule.Override{
		"off":      {Enabled: new(false)},
		"max 0":    {Max: new(int64(0))},
		"max 1":    {Max: new(int64(1))},
		"shadow":   {Mode: new(runtime.ModeShadow), Max: new(int64(1))},
		"window":   {Window: new(2 * time.Hour)},
		"as it is": {},
	}, func(t *testing.T, override rule.Override) {
		limiter, board := following(t, time.Second)
		for _, algorithm := range algorithms {
			limit := (&runtime.Rule{Name: "r", Window: time.Hour, Max: 4, Algorithm: algorithm}).Limit(key("k"))
			d := taken(t, limiter, limit.WithCost(4))
			board.put(overridesOf(override))
			refunded(t, limiter, d)
			board.put(runtime.Overrides{})
			equal(t, fmt.Sprint(algorithm, ": left"), left(t, limiter, limit), 4)
		}
		layered := (&runtime.Rule{Name: "r", Window: time.Hour, Max: 3, Algorithm: runtime.SlidingCounter, Buckets: rule.LayeredBuckets(6, 10)}).Limit(key("layered"))
		board.put(overridesOf(rule.Override{Window: new(2 * time.Hour)}))
		for range 2 {
			wantPassing(t, limiter, layered, 5, 3)
			ok(t, limiter.Reset(t.Context(), layered))
		}
	})
}

// The lines about one rule stay a line a second, however often it is changed.
func TestLogOfOverriddenRule(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var out lines
		limiter, board := following(t, 10*time.Millisecond, out.Logger())
		r := perHour(1)
		for i := range int64(100) {
			board.set(overridesOf(rule.Override{Max: new(1 + i%2)}), nil)
			passing(t, limiter, r.Limit(nil), 3)
			time.Sleep(10 * time.Millisecond)
		}
		equal(t, "lines about refusals in a second", strings.Count(out.String(), "call over its rate limit"), 1)
	})
}

// A decision says whether an override of its rule or of its key holds for it.
func TestOverriddenDecisions(t *testing.T) {
	t.Parallel()
	var seen recorder[observe.DecisionEvent]
	limiter := inMemory(observing(observe.Observer{Decision: withContext(seen.add)}), overridden(runtime.Overrides{Rules: map[string]rule.Override{
		"rule": {Max: new(int64(9))},
		"keys": {Keys: keys{"a": maximum(9), "b*": {Mode: new(runtime.ModeShadow)}}},
		"both": {Mode: new(runtime.ModeShadow), Keys: keys{"a": maximum(9)}},
	}}))
	defer limiter.Close()
	eventually(t, "the overrides are in force", func() bool { // which New waits for, but not for long
		events := seen.all()
		taken(t, limiter, (&runtime.Rule{Name: "rule", Prefix: "first:", Max: 5, Window: time.Hour}).Limit(runtime.NewKey().AddInt(int64(len(events)))))
		return seen.all()[len(events)].Overridden
	})
	for name, keys := range map[string]map[string]bool{
		"rule": {"a": true, "c": true}, "keys": {"a": true, "bb": true, "c": false}, "both": {"a": true, "c": true}, "none": {"a": false},
	} {
		r := &runtime.Rule{Name: name, Prefix: name + ":", Max: 5, Window: time.Hour}
		for k, want := range keys {
			taken(t, limiter, r.Limit(key(k)))
			events := seen.all()
			if last := events[len(events)-1]; last.Rule != name || last.Overridden != want {
				t.Errorf("rule %s, key %s: %+v, want overridden %t", name, k, last, want)
			}
		}
	}
}

// Overrides come and go while calls are under way, under the race detector.
func TestOverridesRace(t *testing.T) {
	t.Parallel()
	var turn atomic.Int64
	source := runtime.OverrideFunc(func(context.Context) (runtime.Overrides, error) {
		n := turn.Add(1)
		return []runtime.Overrides{
			{}, {Enabled: new(false)}, overridesOf(rule.Override{Enabled: new(false)}), overridesOf(rule.Override{Max: new(int64(-1))}),
			overridesOf(rule.Override{Max: new(n), Window: new(time.Duration(n) * time.Millisecond)}),
		}[n%5], nil
	})
	limiter := inMemory(runtime.WithOverrides(source, time.Millisecond),
		runtime.WithProcessCap(&runtime.Rule{Name: "r", Window: time.Second, Max: 1000, Algorithm: runtime.FixedWindow}))
	r := &runtime.Rule{Name: "r", Window: time.Second, Max: 10, Algorithm: runtime.TokenBucket, Burst: 5}
	concurrently(4, func(int) {
		for i := int64(0); turn.Load() < 100; i++ {
			limit := r.Limit(runtime.NewKey().AddInt(i % 7))
			d, err := limiter.Take(context.Background(), limit)
			if err != nil && !errors.Is(err, runtime.ErrLimited) {
				t.Error(err)
			}
			limiter.TakeEach(context.Background(), limit, limit)
			limiter.Refund(context.Background(), d)
		}
	})
	ok(t, limiter.Close())
}
