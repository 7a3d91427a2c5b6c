package crossing

import (
	"errors"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// findings holds what each process says is not in force against what was declared and done: it
// never says so without a reason, and says so of a limiter that nobody uses.
func (o *oracle) findings() {
	p := o.program
	for process, all := range o.listed {
		calls := o.callsOf(process)
		any := func(is func(*asked) bool) bool { return slices.ContainsFunc(calls, is) }
		undecided := func(a *asked) bool {
			return errors.Is(a.err, runtime.ErrUnavailable) || slices.ContainsFunc(a.reported, func(r reported) bool {
				return r.source == rule.SourceFailure || r.source == rule.SourceLocal
			})
		}
		keyless := func(a *asked) bool { return slices.ContainsFunc(a.uses, func(u use) bool { return u.Key == nobody }) }
		decided := func(a *asked) bool { return a.d.Rule != "" }
		unsaid := p.OneClient && process > 0
		unused := len(calls) == 0 && !slices.ContainsFunc(p.Steps, func(s step) bool { return s.Process == process }) && o.lived > time.Minute && (process > 0 || o.closed > time.Minute)
		for _, f := range all {
			reason := false
			switch f.Code {
			case "limiter_unused":
				reason, unused = !any(decided), false
			case "limiter_closed":
				reason = process == 0 && o.closed < endless
			case "two_stores":
				reason, unsaid = unsaid, false
			case "memory_store_replicas":
				reason = p.Replicas > 1
			case "invalid_key":
				reason = any(keyless)
			case "shared_key":
				reason = len(p.Rules) > 1
			case "undecided": // by a look, or a settlement, in a time of trouble
				reason = f.Detail == "key" && any(keyless) || any(undecided) || len(o.faults) > 0 || p.Hasty || p.Trip != trip{}
			case "budget_at_risk":
				reason = slices.ContainsFunc(p.Rules, func(r *runtime.Rule) bool { return r.Period != rule.NoPeriod || r.Window >= 24*time.Hour })
			case "idle_block": // of the rule as it is declared, or as overrides have it
				reason = slices.ContainsFunc(append(slices.Clip(p.Rules), p.Cap), func(r *runtime.Rule) bool {
					return r != nil && r.Block > 0 && (!r.Mode.Refuses() || p.Polled)
				})
			case "evicted", "reads_too_long", "keys_forgotten":
			case "overrides_unread", "overrides_unmet", "override_keys_unfit", "overrides_rejected":
				reason = p.Polled
			case "distinct_keys", "nothing_charged", "all_refunded":
				reason = len(calls) >= 1000
			}
			if !reason {
				o.wrong("what holds is not found", "process %d with %d calls: %v", process, len(calls), f)
			}
		}
		if unsaid {
			o.wrong("two stores on one client are told", "process %d: %v", process, all)
		}
		if unused && slices.ContainsFunc(p.Rules, func(r *runtime.Rule) bool { return !beside(p, slices.Index(p.Rules, r)) }) {
			o.wrong("an unused limiter is found", "process %d: %v", process, all)
		}
	}
}

// callsOf returns the calls of a process.
func (h *history) callsOf(process int) (calls []*asked) {
	for _, a := range h.asked {
		if a.process == process {
			calls = append(calls, a)
		}
	}
	return calls
}
