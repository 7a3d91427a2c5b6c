package runtime

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime/internal/terms"
)

// Register makes rules known to the limiter before their first call, so that [Limiter.Rules]
// lists them, and an override that does not fit one is refused when it is read. Generated
// constructors call it. A rule that is nil or registered already is passed over, and so are
// rules beyond 10,000.
func (l *Limiter) Register(rules ...*Rule) {
	for _, r := range rules {
		if r == nil || !l.registered.Keep(r, new(struct{})) {
			continue
		}
		l.redis.checkDurability(r)
		l.overrides.Load().Effective(r)
	}
}

// A RuleState is a registered rule and what holds for it now.
type RuleState struct {
	// Rule is the rule as it was declared.
	Rule *Rule
	// Enabled is false if the kill switch or an override removes the limit.
	Enabled bool
	// Max is the rule's max with its override and its factor. Calls that bring a max of their
	// own, and single keys that are overridden, have another.
	Max int64
	// Window and Mode are as in a [DecisionEvent].
	Window time.Duration
	Mode   Mode
	// Overridden reports that an override changes the rule itself.
	Overridden bool
	// Keys is how many patterns of single keys have overrides.
	Keys int
	// Factor is that of an adaptive rule, see [Limiter.Factor], and otherwise 1.
	Factor float64
}

// Rules returns the registered rules as they are now, sorted by name, see [Limiter.Register].
func (l *Limiter) Rules() []RuleState {
	enabled := l.Enabled()
	states := make([]RuleState, 0, l.registered.Len())
	for r := range l.registered.All() {
		states = append(states, l.stateOf(r, enabled))
	}
	slices.SortFunc(states, func(a, b RuleState) int {
		return cmp.Or(cmp.Compare(a.Rule.Name, b.Rule.Name), cmp.Compare(a.Rule.Source, b.Rule.Source))
	})
	return states
}

// stateOf returns what holds for a rule while limits are enabled or not.
func (l *Limiter) stateOf(r *Rule, enabled bool) RuleState {
	e := l.overrides.Load().Effective(r)
	n, factor, most := e.Rule.numbers(), l.Factor(r), e.Rule.Max
	if factor != 1 && most > 0 {
		most = n.Scale(most, 1, factor)
	}
	window, _ := n.Present()
	return RuleState{
		Rule: r, Enabled: enabled && !e.Off, Max: most, Window: window, Mode: e.Rule.Mode,
		Overridden: e.Rule.overridden, Keys: e.Keys(), Factor: factor,
	}
}

// Warm connects to every server of the store and has it load the scripts of all registered
// rules, so that no request pays for it. Call it before the program takes requests, with a
// context that bounds how long it may take. An error says that a server did not answer. Calls
// are decided in any case: the first ones connect and load what they need. Nothing is counted.
// With a store in memory there is nothing to do.
func (l *Limiter) Warm(ctx context.Context) error {
	if l.redis == nil {
		return nil
	}
	var limits []terms.Terms
	for r := range l.registered.All() {
		n := r.numbers()
		limits = append(limits, n.Terms(r.Max))
	}
	return l.redis.router.Warm(ctx, limits)
}

// Permits returns how many permits of [Concurrency] limits the calls of this process hold, by
// the name of the rule. A rule whose calls have all ended stays, at 0, unless there are more
// than 10,000 names.
func (l *Limiter) Permits() map[string]int64 { return l.permits.InFlight() }

// Leased returns how many units this process holds of rules with a [Rule.Lease], by the name of
// the rule: they are charged, and no call has used them yet. What nobody uses before its time
// is over is refunded.
func (l *Limiter) Leased() map[string]int64 { return l.engine.Leases.Units() }
