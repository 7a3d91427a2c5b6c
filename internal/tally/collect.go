package tally

import (
	"slices"
	"weak"

	"github.com/rategen/rategen/runtime"
)

// Emit receives one value of a family, with values for its labels in their order.
type Emit func(f *Family, value float64, labels ...string)

// Collect emits all values as they are now. No two have the same family and
// labels. What is declared of a rule comes from the limiters that have registered
// it: if several rules have one name, from the first one that a limiter names.
func (t *Tally) Collect(emit Emit) {
	t.mu.Lock()
	limiters := slices.Clone(t.limiters)
	for in, n := range t.panics {
		emit(panics, float64(n), in)
	}
	t.mu.Unlock()

	states, held := t.states(limiters)
	for _, r := range t.names.all() {
		r.collect(emit)
		state, registered := states[r]
		switch told := r.factor.Load(); {
		case registered && state.Rule.Adaptive != nil:
			emit(factor, state.Factor, r.label)
		case told != nil:
			emit(factor, *told, r.label)
		}
		if registered {
			collectState(emit, r.label, &state)
		}
		if n, ok := held[r]; ok {
			emit(inFlight, float64(n), r.label)
		}
	}
	t.nodes.collect(emit)
	emit(overridden, float64(t.overridden.Load()))
	emit(rejected, float64(t.rejected.Load()))
	emit(unread, one(t.unread.Load()))
	if t.measured.Load() {
		emit(memoryUsed, float64(t.memoryUsed.Load()))
		emit(memoryMax, float64(t.memoryMax.Load()))
	}
}

// states returns the registered rules of limiters, and how many permits their calls
// hold. It makes the rules known, so that they have series before their first call.
func (t *Tally) states(limiters []weak.Pointer[runtime.Limiter]) (map[*rule]runtime.RuleState, map[*rule]int64) {
	states, held := map[*rule]runtime.RuleState{}, map[*rule]int64{}
	for _, p := range limiters {
		l := p.Value()
		if l == nil {
			continue // it is gone
		}
		registered := l.Rules()
		t.names.learn(registered)
		for _, state := range registered {
			r := t.names.of(state.Rule.Name)
			if r == &t.names.other {
				continue // it stands for many
			}
			if _, known := states[r]; !known {
				states[r] = state
			}
			if state.Rule.Algorithm == runtime.Concurrency {
				held[r] += 0
			}
		}
		for name, n := range l.InFlight() {
			held[t.names.of(name)] += n
		}
	}
	return states, held
}

// collectState emits what holds for a rule.
func collectState(emit Emit, label string, state *runtime.RuleState) {
	emit(ruleInfo, 1, label, state.Rule.Algorithm.String(), state.Rule.Mode.String())
	emit(ruleEnforced, one(state.Enabled && state.Mode == runtime.Enforce), label)
	emit(ruleLimit, float64(state.Max), label)
	emit(ruleWindow, state.Window.Seconds(), label)
}

// one returns 1 for true.
func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
