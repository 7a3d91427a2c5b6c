package ratetally

import (
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	rules "github.com/rategen/rategen/runtime/rule"
)

// The sizes of arrays that verdicts, sources and failure policies are indices of.
// They are powers of two, so that a mask is enough to stay within them.
const (
	verdicts = 8
	sources  = 8
	policies = 4
)

// classes is how many classes of errors there are.
var classes = func() (n observe.ErrorClass) {
	for n = 1; n.String() != observe.ClassOther.String(); {
		n++
	}
	return n
}()

// A rule is what is counted under one rule name.
type rule struct {
	label     string // its name, fit for a label
	decisions [verdicts][sources]atomic.Uint64
	extra     [verdicts]atomic.Uint64 // by how much the cost exceeds the number of decisions
	near      atomic.Uint64
	shares    [len(percents)]atomic.Uint64 // keys over each of percents
	hidden    atomic.Uint64                // refusals
	served    atomic.Uint64                // refusals
	over      atomic.Uint64                // decisions under an override
	waiting   atomic.Int64
	waits     [2]atomic.Uint64                // in vain, and with success
	waited    atomic.Int64                    // nanoseconds
	refused   atomic.Uint64                   // calls that went out, by the peer
	held      atomic.Pointer[time.Time]       // until when calls are held back; nil if never
	failures  atomic.Pointer[[]atomic.Uint64] // by class and policy; nil before the first
	factor    atomic.Pointer[float64]         // as last told; nil if never
}

// decided counts a decision.
func (r *rule) decided(ev *observe.DecisionEvent) {
	v := ev.Verdict % verdicts
	r.decisions[v][ev.Source%sources].Add(1)
	if ev.Cost > 1 {
		r.extra[v].Add(uint64(ev.Cost - 1))
	}
	// Limit and Remaining are at most rule.MaxAmount.
	if 5*ev.Remaining <= ev.Limit && ev.Limit > 0 && ev.Source != rules.SourceNone {
		r.near.Add(1)
	}
	if ev.Overridden {
		r.over.Add(1)
	}
}

// wait counts a call that waits, or has waited.
func (r *rule) wait(ev observe.WaitEvent) {
	if ev.Waiting {
		r.waiting.Add(1)
		return
	}
	r.waiting.Add(-1)
	r.waited.Add(int64(ev.Waited))
	if ev.Admitted {
		r.waits[1].Add(1)
	} else {
		r.waits[0].Add(1)
	}
}

// collectWaits emits what is known of calls that wait, if there may be any.
func (r *rule) collectWaits(emit Emit, may bool) {
	now, vain, won := r.waiting.Load(), r.waits[0].Load(), r.waits[1].Load()
	if !may && now == 0 && vain+won == 0 {
		return
	}
	emit(waitingNow, float64(max(0, now)), r.label)
	emit(waitCount, float64(vain), r.label, "false")
	emit(waitCount, float64(won), r.label, "true")
	emit(waitTime, time.Duration(r.waited.Load()).Seconds(), r.label)
}

// hold notes that calls on a key are held back or released. A hold that ends before
// another one that is known adds nothing.
func (r *rule) hold(ev observe.HoldEvent) {
	until := time.Now().Add(ev.For)
	for {
		was := r.held.Load()
		if ev.For > 0 && was != nil && until.Before(*was) || r.held.CompareAndSwap(was, &until) {
			return
		}
	}
}

// heldFor returns for how long calls are held back from now on, and whether they ever were.
func (r *rule) heldFor() (d time.Duration, ever bool) {
	until := r.held.Load()
	if until == nil {
		return 0, false
	}
	return max(0, time.Until(*until)), true
}

// collectHolds emits what peers have said of calls that go out, if there may be any.
func (r *rule) collectHolds(emit Emit, may bool) {
	rest, ever := r.heldFor()
	n := r.refused.Load()
	if may || ever || n > 0 {
		emit(peerRefusals, float64(n), r.label)
		emit(heldFor, rest.Seconds(), r.label)
	}
}

// percents are the shares of a period that are told.
var percents = [...]int{80, 100}

// reached counts a key over a share of its period.
func (r *rule) reached(ev observe.ThresholdEvent) {
	if i := slices.Index(percents[:], ev.Percent); i >= 0 {
		r.shares[i].Add(1)
	}
}

// collectShares emits how many keys were over shares of their periods, if there may be any.
func (r *rule) collectShares(emit Emit, may bool) {
	for i, percent := range percents {
		if n := r.shares[i].Load(); may || n > 0 {
			emit(thresholds, float64(n), r.label, strconv.Itoa(percent))
		}
	}
}

// failed counts a failure.
func (r *rule) failed(ev observe.FailureEvent) {
	counts := r.failures.Load()
	if counts == nil {
		made := make([]atomic.Uint64, int(classes)*policies)
		r.failures.CompareAndSwap(nil, &made)
		counts = r.failures.Load()
	}
	class := ev.Class
	if class >= classes {
		class = observe.ClassOther
	}
	(*counts)[int(class)*policies+int(ev.Policy%policies)].Add(1)
}

// A Rule is what is counted under one rule name.
type Rule struct{ rule *rule }

// Rules returns what is counted under each name.
func (t *Tally) Rules() []Rule {
	all := t.names.all()
	rules := make([]Rule, len(all))
	for i, r := range all {
		rules[i] = Rule{r}
	}
	return rules
}

// Label returns the name, fit for a label.
func (r Rule) Label() string { return r.rule.label }

// Waiting returns how many calls wait for their turn.
func (r Rule) Waiting() int64 { return max(0, r.rule.waiting.Load()) }

// Held returns for how long calls are held back from now on.
func (r Rule) Held() time.Duration {
	d, _ := r.rule.heldFor()
	return d
}

// Decisions calls visit with the number of decisions of each kind that there were.
func (r Rule) Decisions(visit func(observe.Verdict, rules.Source, uint64)) {
	for v := range r.rule.decisions {
		for s := range r.rule.decisions[v] {
			if n := r.rule.decisions[v][s].Load(); n > 0 {
				visit(observe.Verdict(v), rules.Source(s), n)
			}
		}
	}
}

// expected are the decisions that a rule has series for from its first call on. The others get
// theirs with their first decision.
var expected = func() (is [verdicts][sources]bool) {
	is[observe.VerdictAdmitted][rules.SourceStore] = true
	is[observe.VerdictAdmitted][rules.SourceLocal] = true
	is[observe.VerdictAdmitted][rules.SourceFailure] = true
	is[observe.VerdictRefused][rules.SourceStore] = true
	is[observe.VerdictRefused][rules.SourceRecalled] = true
	is[observe.VerdictRefused][rules.SourceLocal] = true
	is[observe.VerdictShadowRefused][rules.SourceStore] = true
	is[observe.VerdictNotCharged][rules.SourceStore] = true
	is[observe.VerdictUnavailable][rules.SourceFailure] = true
	return is
}()

// first are the decisions that a rule has series for before its first call, so that rates count
// that one. A program may declare hundreds of rules that it never uses.
var first = []struct {
	verdict observe.Verdict
	source  rules.Source
}{
	{observe.VerdictAdmitted, rules.SourceStore}, {observe.VerdictRefused, rules.SourceStore},
	{observe.VerdictAdmitted, rules.SourceLocal}, {observe.VerdictAdmitted, rules.SourceFailure},
	{observe.VerdictUnavailable, rules.SourceFailure},
}

// called reports whether a call has met the rule.
func (r *rule) called() bool {
	for v := range r.decisions {
		for s := range r.decisions[v] {
			if r.decisions[v][s].Load() > 0 {
				return true
			}
		}
	}
	return r.failures.Load() != nil || r.hidden.Load()+r.served.Load() > 0
}

// collect emits what was counted.
func (r *rule) collect(emit Emit) {
	if !r.called() {
		for _, d := range first {
			emit(Decisions, 0, r.label, d.verdict.String(), d.source.String())
		}
		return
	}
	for v := range verdicts {
		verdict := observe.Verdict(v).String()
		total, known := uint64(0), false
		for s := range sources {
			n := r.decisions[v][s].Load()
			if n > 0 || expected[v][s] {
				emit(Decisions, float64(n), r.label, verdict, rules.Source(s).String())
				total, known = total+n, true
			}
		}
		if known {
			emit(cost, float64(total+r.extra[v].Load()), r.label, verdict)
		}
	}
	emit(nearLimit, float64(r.near.Load()), r.label)
	emit(hidden, float64(r.hidden.Load()), r.label)
	emit(served, float64(r.served.Load()), r.label)
	emit(overridesUse, float64(r.over.Load()), r.label)
	if counts := r.failures.Load(); counts != nil {
		for i := range *counts {
			if n := (*counts)[i].Load(); n > 0 {
				emit(failures, float64(n), r.label, observe.ErrorClass(i/policies).String(), policyName(runtime.FailurePolicy(i%policies)))
			}
		}
	}
}

// policyName returns the label of a policy. A decision that could not be settled
// has none.
func policyName(p runtime.FailurePolicy) string {
	if p == runtime.FailDefault {
		return "none"
	}
	return p.String()
}
