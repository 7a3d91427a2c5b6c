package ratetally

import (
	"slices"
	"weak"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/buildversion"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	rules "github.com/rategen/rategen/runtime/rule"
)

// Emit receives one value of a family, with values for its labels in their order.
type Emit func(f *Family, value float64, labels ...string)

// Collect emits all values as they are now. No two have the same family and
// labels. Without a limiter and an event there are none. What is declared of a rule comes from the limiters that have registered
// it: if several rules have one name, from the first one that a limiter names.
func (t *Tally) Collect(emit Emit) {
	t.mu.Lock()
	if !t.attached && len(t.names.all()) == 0 {
		t.mu.Unlock()
		return // zeros would say that limits hold
	}
	limiters, closed := slices.Clone(t.limiters), t.closed
	for in, n := range t.panics {
		emit(panics, float64(n), in)
	}
	emit(buildInfo, 1, buildversion.Linked())
	t.mu.Unlock()

	states := t.states(limiters)
	for _, r := range t.names.all() {
		r.collect(emit)
		state := states[r]
		registered := state.declared != nil
		current := r.factor.Load()
		if registered && state.declared.Rule.Adaptive != nil {
			emit(factor, state.declared.Factor, r.label)
		} else if current != nil {
			emit(factor, *current, r.label)
		}
		if registered {
			collectState(emit, r.label, state.declared)
		}
		if state.holds {
			emit(inFlight, float64(state.held), r.label)
		}
		if state.leases {
			emit(leased, float64(state.leased), r.label)
		}
		holds := registered && state.declared.Rule.Hold
		r.collectWaits(emit, holds || registered && state.declared.Rule.Wait > 0)
		r.collectHolds(emit, holds)
		r.collectShares(emit, registered && state.declared.Rule.Period != rules.NoPeriod)
	}
	t.nodes.collect(emit)
	unmet := notInForceOf(append(limiters, closed), emit)
	emit(overridden, float64(max(0, t.overridden.Load()-unmet)))
	emit(rejected, float64(t.rejected.Load()))
	emit(unread, boolValue(t.unread.Load()))
	if t.measured.Load() {
		emit(memoryUsed, float64(t.memoryUsed.Load()))
		emit(memoryMax, float64(t.memoryMax.Load()))
		emit(evicted, float64(t.evicted.Load()))
	}
}

// notInForceOf emits what limiters have found, those that are closed included: calls may still
// come to one. It returns how many overrides are for no rule.
func notInForceOf(limiters []weak.Pointer[runtime.Limiter], emit Emit) (unmet int64) {
	type of struct{ code, rule string }
	found := map[of]int{}
	for _, p := range limiters {
		if l := p.Value(); l != nil {
			for _, f := range l.Findings() {
				found[of{f.Code, labelOf(f.Rule)}]++
				if f.Code == "overrides_unmet" {
					unmet++
				}
			}
		}
	}
	for f, n := range found {
		emit(notInForce, float64(n), f.code, f.rule)
	}
	return unmet
}

// A ruleState is what limiters say of the rules of one name.
type ruleState struct {
	declared      *observe.RuleState // of the first that is registered; nil: none is
	holds, leases bool               // permits and units are counted
	held, leased  int64              // by the calls of this process, and by itself
}

// states returns what limiters say of rules. It makes those that are registered known,
// so that they have series before their first call.
func (t *Tally) states(limiters []weak.Pointer[runtime.Limiter]) map[*rule]ruleState {
	states := map[*rule]ruleState{}
	change := func(r *rule, change func(*ruleState)) {
		s := states[r]
		change(&s)
		states[r] = s
	}
	for _, p := range limiters {
		l := p.Value()
		if l == nil {
			continue // it is gone
		}
		registered := l.Rules()
		t.names.learn(registered)
		for i := range registered {
			state := &registered[i]
			r := t.names.rule(state.Rule.Name)
			if r == &t.names.other {
				continue // it stands for many
			}
			change(r, func(s *ruleState) {
				if s.declared == nil {
					s.declared = state
				}
				s.holds = s.holds || algorithm.RowOf(state.Rule.Algorithm).Is(algorithm.Lends)
				s.leases = s.leases || state.Rule.Lease > 0
			})
		}
		for name, n := range bridge.LimiterOf(l).Permits() {
			change(t.names.rule(name), func(s *ruleState) { s.holds, s.held = true, s.held+n })
		}
		for name, n := range bridge.LimiterOf(l).Leased() {
			change(t.names.rule(name), func(s *ruleState) { s.leases, s.leased = true, s.leased+n })
		}
	}
	return states
}

// collectState emits what holds for a rule.
func collectState(emit Emit, label string, state *observe.RuleState) {
	emit(ruleInfo, 1, label, state.Rule.Algorithm.String(), state.Rule.Mode.String())
	emit(ruleEnforced, boolValue(state.Enabled && state.Mode == runtime.ModeEnforce), label)
	emit(ruleLimit, float64(state.Max), label)
	emit(ruleWindow, state.Window.Seconds(), label)
}

// boolValue returns 1 for true.
func boolValue(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
