package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/rategen/rategen/runtime/internal/findings"
	"github.com/rategen/rategen/runtime/internal/keytext"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/report"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// Register makes rules known to the limiter before their first call, so that [Limiter.Rules]
// lists them, and an override that does not fit one is refused when it is read. Generated
// constructors call it. A rule that is nil or registered already is passed over, and so are
// rules beyond 10,000.
//
// Rules whose keys start alike, or of one Name, must have the same terms: all that says how much
// is admitted, and how it is counted. Otherwise Register panics. The first would count in one
// key, where neither holds, and who overrides or watches one of the others has both. Rules with a
// Ledger whose keys start alike must have one Name, too.
func (l *Limiter) Register(rules ...*Rule) {
	for _, r := range rules {
		if r == nil || l.registered.Find(r) != nil {
			continue
		}
		l.terms.add(r, l.plans.Namespace)
		if !l.registered.Keep(r, new(*r)) {
			continue
		}
		if l.hasMemory {
			l.events.Crowd(r)
		}
		l.redis.checkNamespace(r, l.plans.Namespace)
		l.redis.checkDurability(r)
		if r.Ledger != rule.LedgerOff {
			l.plans.Label(&Limit{Rule: r})
		}
		l.plans.Overrides().Effective(r)
	}
}

// A termTable has the first of the rules of each name, and of each start of keys.
type termTable struct {
	mu              sync.Mutex
	byName, byStart map[string]*Rule
}

// add adds a rule. It panics if there is one with which that cannot go together.
func (t *termTable) add(r *Rule, namespace string) {
	if rule.Engine.CheckCall(r, r.Max, 1) != nil {
		return // it admits nobody
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	start := plan.Start(namespace, r)
	if o := t.byStart[start]; o != nil {
		mustAgree(r, o, "start their keys with "+strconv.Quote(start),
			"they would not be one limit: give one of them a Prefix and a Name of its own (prefix= and name= in a directive), or a limiter with another WithNamespace")
		if r.Ledger != rule.LedgerOff && r.Name != o.Name {
			panic(fmt.Sprintf("runtime: the rules %q (%s) and %q (%s) start their keys with %q, and a ledger would bill each key to both: give both one Name, or one of them a Prefix of its own (name= and prefix= in a directive)",
				o.Name, o.Source, r.Name, r.Source, start))
		}
	}
	if o := t.byName[r.Name]; o != nil && r.Name != "" {
		mustAgree(r, o, "have one name", "overrides, logs and metrics could not tell them apart: give one of them a Name of its own (name= in a directive)")
	}
	if t.byName == nil {
		t.byName, t.byStart = map[string]*Rule{}, map[string]*Rule{}
	}
	if len(t.byStart) < findings.Most {
		t.byStart[start], t.byName[r.Name] = cmp.Or(t.byStart[start], r), cmp.Or(t.byName[r.Name], r)
	}
}

// mustAgree panics if two rules have different terms and something in common, and says why they
// must not.
func mustAgree(r, o *Rule, common, why string) {
	if difference := difference(o, r); difference != "" {
		panic(fmt.Sprintf("runtime: the rules %q (%s) and %q (%s) %s, but %s: %s", o.Name, o.Source, r.Name, r.Source,
			common, difference, why))
	}
}

// difference says in what the terms of two rules differ, or "". Two that stand in one line may
// wait for different times.
func difference(r, o *Rule) string {
	a, b := plan.NumbersOf(r), plan.NumbersOf(o)
	if a.Queues() && b.Queues() {
		same := *o
		same.Wait = r.Wait
		b.Rule = &same
	}
	x, y := a.Terms(r.Max), b.Terms(o.Max)
	x.Shadow, y.Shadow = false, false
	if x == y && plan.Adapts(r) == plan.Adapts(o) {
		return ""
	}
	for _, t := range [...]struct {
		name        string
		here, there any
	}{
		{"algorithm", r.Algorithm, o.Algorithm}, {"storage", r.Storage, o.Storage}, {"window", r.Window, o.Window},
		{"period", r.Period, o.Period}, {"zone", r.Zone, o.Zone}, {"anchor", r.Anchor, o.Anchor}, {"keep", r.Keep, o.Keep}, {"ledger", r.Ledger, o.Ledger},
		{"max", r.Max, o.Max}, {"burst", r.Burst, o.Burst}, {"headroom", r.Headroom, o.Headroom}, {"resolution", r.Resolution, o.Resolution},
		{"buckets", r.Buckets, o.Buckets},
		{"block", r.Block, o.Block}, {"lease", r.Lease, o.Lease}, {"reserve", r.Reserve, o.Reserve}, {"debt", r.Debt, o.Debt},
		{"hold", r.Hold, o.Hold}, {"being adaptive", plan.Adapts(r), plan.Adapts(o)}, {"wait", r.Wait, o.Wait},
	} {
		if t.here != t.there {
			return fmt.Sprintf("their %s is %v and %v", t.name, t.here, t.there)
		}
	}
	return "they are counted differently"
}

// checkNamespace has the store, if it is not nil, say that limiters on it have a rule in namespaces
// that are alike, as if one was misspelt.
func (s *RedisStore) checkNamespace(r *Rule, namespace string) {
	if s == nil || s.namespaces.Keep(r, &namespace) {
		return
	}
	if other := s.namespaces.Find(r); other != nil && *other != namespace &&
		strings.EqualFold(strings.TrimSpace(*other), strings.TrimSpace(namespace)) {
		s.events().Log.Find(report.Namespaces, r.Name, "")
	}
}

// checkChanges says which of the registered rules were changed. A Max is read with each call.
func (l *Limiter) checkChanges() {
	for r, was := range l.registered.All() {
		before, now := *was, *r
		before.Max, before.Adaptive, now.Adaptive = now.Max, nil, nil
		if before != now && (before.Mode != now.Mode || difference(&before, &now) != "") {
			l.events.Log.Find(report.RuleChanged, was.Name, "")
		}
	}
}

// Rules returns the registered rules as they are now, sorted by name, see [Limiter.Register].
func (l *Limiter) Rules() []observe.RuleState {
	enabled := l.Enabled()
	states := make([]observe.RuleState, 0, l.registered.Len())
	for r := range l.registered.All() {
		states = append(states, l.stateOf(r, enabled))
	}
	slices.SortFunc(states, func(a, b observe.RuleState) int {
		return cmp.Or(cmp.Compare(a.Rule.Name, b.Rule.Name), cmp.Compare(a.Rule.Source, b.Rule.Source))
	})
	return states
}

// stateOf returns what holds for a rule while limits are enabled or not.
func (l *Limiter) stateOf(r *Rule, enabled bool) observe.RuleState {
	e := l.plans.Overrides().Effective(r)
	n, factor, most := plan.NumbersOf(e.Rule), lent{l}.Factor(r), e.Rule.Max
	if factor != 1 && most > 0 {
		most = n.Scale(most, 1, factor)
	}
	window, _ := n.Present()
	s := l.plans.Samples.Find(r)
	return observe.RuleState{
		Rule: r, Enabled: enabled && !e.Off, Max: most, Window: window, Mode: e.Rule.Mode,
		Overridden: e.Rule != r, Keys: e.Keys(), Factor: factor, Called: s != nil && s.Met.Load(), KeyParts: keyPartCount(s),
	}
}

// keyPartCount returns how many parts the key of a sample has, or 0.
func keyPartCount(s *findings.Sample) int {
	if s == nil || keytext.IsHash(string(s.Key())) {
		return 0
	}
	return keytext.Pattern{Text: string(s.Key())}.Parts()
}

// Warm connects to every server of the store and has it load the scripts of all registered
// rules, so that no request pays for it. Call it before the program takes requests, with a
// context that bounds how long it may take. An error says that a server did not answer. Calls
// are decided in any case: the first ones connect and load what they need. Nothing is counted.
// With a store in memory there is nothing to load.
//
// The error is a [*FindingsError] too if something that was declared is known not to hold.
func (l *Limiter) Warm(ctx context.Context) (err error) {
	if l.redis != nil {
		err = l.load(ctx)
	}
	if found := l.ownFindings(); len(found) > 0 {
		err = errors.Join(err, &FindingsError{found})
	}
	return err
}

// load has the servers load the scripts of the registered rules.
func (l *Limiter) load(ctx context.Context) error {
	var limits []terms.Terms
	for r := range l.registered.All() {
		n := plan.NumbersOf(r)
		limits = append(limits, n.Terms(r.Max))
	}
	return l.redis.router.Warm(ctx, limits)
}
