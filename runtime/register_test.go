package runtime_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/runtime"
)

// TestRules registers rules before their first call and reads what holds for
// them: as declared, under overrides, by an adaptive factor and with limits
// switched off.
func TestRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plain := &runtime.Rule{Name: "b", Window: time.Second, Max: 10}
		twin := &runtime.Rule{Name: "b", Source: "z", Prefix: "twin", Window: time.Second, Max: 10}
		adaptive := &runtime.Rule{Name: "a", Window: time.Minute, Max: 100, Adaptive: always(0.5)}
		var attached *runtime.Limiter
		limiter, board := following(t, observing(runtime.Observer{Attach: func(l *runtime.Limiter) { attached = l }}))
		if attached != limiter {
			t.Fatal("the observer does not have its limiter")
		}
		limiter.Register(plain, nil, adaptive)
		limiter.Register(twin, plain)

		state := func(r *runtime.Rule, change func(*runtime.RuleState)) runtime.RuleState {
			s := runtime.RuleState{Rule: r, Enabled: true, Max: r.Max, Window: r.Window, Factor: 1}
			change(&s)
			return s
		}
		asDeclared := func(*runtime.RuleState) {}
		halved := func(s *runtime.RuleState) { s.Max, s.Factor = 50, 0.5 }
		check := func(what string, ofAdaptive, ofOthers func(*runtime.RuleState)) {
			t.Helper()
			want := []runtime.RuleState{state(adaptive, ofAdaptive), state(plain, ofOthers), state(twin, ofOthers)}
			if diff := cmp.Diff(want, limiter.Rules(), cmp.Comparer(func(a, b *runtime.Rule) bool { return a == b })); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
		}
		check("as declared", asDeclared, asDeclared)
		taken(t, limiter, adaptive.Limit(nil))
		synctest.Wait()
		check("with a factor", halved, asDeclared)
		board.put(runtime.Overrides{Rules: map[string]runtime.Override{
			"a": {Max: new(int64(40)), Mode: new(runtime.ModeShadow)},
			"b": {Keys: keys{"x": maximum(1), "y*": {Enabled: new(false)}, "z": maximum(1)}},
		}})
		check("overridden", func(s *runtime.RuleState) {
			s.Factor, s.Max, s.Mode, s.Overridden = 0.5, 20, runtime.ModeShadow, true
		}, func(s *runtime.RuleState) { s.Keys = 3 })
		board.put(runtime.Overrides{Rules: map[string]runtime.Override{"b": {Enabled: new(false)}}})
		check("switched off by an override", halved, func(s *runtime.RuleState) { s.Enabled, s.Overridden = false, true })
		board.put(runtime.Overrides{Enabled: new(false)})
		check("all limits off", func(s *runtime.RuleState) { halved(s); s.Enabled = false }, func(s *runtime.RuleState) { s.Enabled = false })
		// An override that fits no registered rule is refused when it is read.
		board.put(runtime.Overrides{Rules: map[string]runtime.Override{"b": {Max: new(int64(7))}}})
		board.put(runtime.Overrides{Rules: map[string]runtime.Override{"b": {Max: new(int64(runtime.MaxLog + 1))}}})
		check("after one that does not fit", halved, func(s *runtime.RuleState) { s.Max, s.Overridden = 7, true })
	})
}
