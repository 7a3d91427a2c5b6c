package crossing

import (
	"fmt"
	"slices"

	"github.com/rategen/rategen/runtime"
)

// twin returns the same program without the limits that are declared in shadow mode, and
// whether both runs are to decide alike: if nothing in it depends on the order in which
// callers wake up.
func (p *program) twin() (*program, bool) {
	other := *p
	other.Steps = slices.Clone(p.Steps)
	for _, r := range p.Rules {
		waits := r.Wait > 0 && (r.Algorithm != runtime.LeakyBucket || len(p.Rules) > 1)
		if waits || r.Lease > 0 {
			return nil, false
		}
	}
	found := false
	for i, s := range other.Steps {
		switch do := s.Do.(type) {
		case call:
			enforced := slices.DeleteFunc(slices.Clone(do.Uses), func(u use) bool { return !p.Rules[u.Rule].Mode.Refuses() })
			if len(enforced) < len(do.Uses) && do.Each && p.Cap != nil || do.Wrong != none {
				return nil, false // the cap counts each limit; and a mistake is one no more
			}
			for _, u := range do.Uses {
				if beside(p, u.Rule) && (p.Polled || slices.ContainsFunc(enforced, func(e use) bool { return e.Rule == 0 && e.Cost == 0 })) {
					return nil, false // it may be alone on the key, and then it counts there
				}
			}
			found = found || len(enforced) < len(do.Uses)
			do.Uses = enforced
			other.Steps[i].Do = do
		case trouble:
			if do.Kind == slow {
				return nil, false
			}
		case reset:
			if p.shares(do.Rule) {
				return nil, false
			}
		}
	}
	return &other, found
}

// compare holds the decisions of a program against those of its twin.
func (o *oracle) compare(twin *history) {
	var alone []*asked
	for _, a := range twin.asked {
		if slices.ContainsFunc(a.uses, func(u use) bool { return u.Cost > 0 }) {
			alone = append(alone, a)
		}
	}
	var mixed []*asked
	for _, a := range o.asked {
		if slices.ContainsFunc(a.uses, func(u use) bool { return u.Cost > 0 && o.program.Rules[u.Rule].Mode == runtime.ModeEnforce }) {
			mixed = append(mixed, a)
		}
	}
	for i := range min(len(alone), len(mixed)) {
		a, b := mixed[i], alone[i]
		if o.adapts(b) {
			return // calls of one moment have either factor
		}
		told := a.d.RetryAfter == b.d.RetryAfter
		if !told && o.held(a) {
			// It may be decided before or after a renewal of the same moment.
			if a.call.Again {
				return
			}
			told = true
		}
		if a.start != b.start || a.at != b.at || a.end != b.end || kind(a.err) != kind(b.err) || a.d.Allowed != b.d.Allowed || !told {
			if a.call.Meter != nil && a.call.Cancel > 0 {
				return // its context may end when a message comes, and calls after it begin then
			}
			if len(during(o.faults, 0, a.end)) > 0 {
				return // calls that a fault has kept waiting are decided in any order
			}
			o.wrong("a shadow limit changes nothing", "#%d: %v %v at %v until %v, retry after %v; without it %v at %v until %v, retry after %v",
				a.number, a.uses, kind(a.err), a.start, a.end, a.d.RetryAfter, kind(b.err), b.start, b.end, b.d.RetryAfter)
			return
		}
	}
	if len(alone) != len(mixed) && len(o.faults) == 0 {
		o.wrong("a shadow limit changes nothing", "%d decisions, without it %d", len(mixed), len(alone))
	}
}

// held reports whether charges of a call are renewed while calls run.
func (o *oracle) held(a *asked) bool { return o.reserves(a) || holdsPermits(o.program, a.uses) }

// kind returns the text of an error without what differs between equal runs.
func kind(err error) string {
	if err == nil {
		return "admitted"
	}
	return fmt.Sprint(err)
}
