package runtime_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// TestRules registers rules before their first call and reads what holds for them: as declared,
// under overrides, by an adaptive factor and with limits switched off.
func TestRules(t *testing.T) {
	bubble(t, func(t *testing.T) {
		plain := &runtime.Rule{Name: "b", Window: time.Second, Max: 10}
		twin := &runtime.Rule{Name: "b", Source: "z", Prefix: "twin", Window: time.Second, Max: 10}
		adaptive := &runtime.Rule{Name: "a", Window: time.Minute, Max: 100, Adaptive: always(0.5)}
		var attached *runtime.Limiter
		limiter, board := following(t, time.Second, observing(observe.Observer{Attach: func(l observe.Limiter) { attached = l.(*runtime.Limiter) }}))
		equal(t, "the observer's limiter", attached, limiter)
		limiter.Register(plain, nil, adaptive)
		limiter.Register(twin, plain)

		state := func(r *runtime.Rule, change func(*observe.RuleState)) observe.RuleState {
			s := observe.RuleState{Rule: r, Enabled: true, Max: r.Max, Window: r.Window, Factor: 1}
			change(&s)
			return s
		}
		asDeclared := func(*observe.RuleState) {}
		halved := func(s *observe.RuleState) { s.Max, s.Factor, s.Called = 50, 0.5, true }
		check := func(what string, ofAdaptive, ofOthers func(*observe.RuleState)) {
			t.Helper()
			want := []observe.RuleState{state(adaptive, ofAdaptive), state(plain, ofOthers), state(twin, ofOthers)}
			same(t, what, want, limiter.Rules(), cmp.Comparer(func(a, b *runtime.Rule) bool { return a == b }))
		}
		check("as declared", asDeclared, asDeclared)
		taken(t, limiter, adaptive.Limit(nil))
		synctest.Wait()
		check("with a factor", halved, asDeclared)
		board.put(runtime.Overrides{Rules: map[string]rule.Override{
			"a": {Max: new(int64(40)), Mode: new(runtime.ModeShadow)},
			"b": {Keys: keys{"x": maximum(1), "y*": {Enabled: new(false)}, "z": maximum(1)}},
		}})
		check("overridden", func(s *observe.RuleState) {
			s.Factor, s.Max, s.Mode, s.Overridden, s.Called = 0.5, 20, runtime.ModeShadow, true, true
		}, func(s *observe.RuleState) { s.Keys = 3 })
		board.put(runtime.Overrides{Rules: map[string]rule.Override{"b": {Enabled: new(false)}}})
		check("switched off by an override", halved, func(s *observe.RuleState) { s.Enabled, s.Overridden = false, true })
		board.put(runtime.Overrides{Enabled: new(false)})
		check("all limits off", func(s *observe.RuleState) { halved(s); s.Enabled = false }, func(s *observe.RuleState) { s.Enabled = false })
		// An override that fits no registered rule is refused when it is read.
		board.put(runtime.Overrides{Rules: map[string]rule.Override{"b": {Max: new(int64(7))}}})
		board.put(runtime.Overrides{Rules: map[string]rule.Override{"b": {Max: new(int64(rule.MaxLog + 1))}}})
		check("after one that does not fit", halved, func(s *observe.RuleState) { s.Max, s.Overridden = 7, true })
	})
}
