package crossing

import (
	"slices"
	"strconv"
	"time"

	"github.com/rategen/rategen/internal/testkit/document"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// A told share of a period is one that observers heard of.
type told struct {
	observe.ThresholdEvent
	at time.Duration
}

// listen has shares told to the history.
func listen(r *running) func(observe.ThresholdEvent) {
	return func(ev observe.ThresholdEvent) {
		r.history.mu.Lock()
		defer r.history.mu.Unlock()
		r.history.told = append(r.history.told, told{ev, r.now()})
	}
}

// thresholds holds what was told of shares against what was used: each is told once a period
// and limit, by whichever process, and all are that a charge has passed, unless one of a higher
// limit was before. When the clock has been set it is not known which period is meant.
func (o *oracle) thresholds() {
	if len(o.jumps) > 0 {
		return
	}
	rules := map[string]*runtime.Rule{}
	for _, r := range o.program.Rules {
		rules[r.Name] = r
	}
	of := func(ev told, declared *runtime.Rule, key string, at time.Duration) bool {
		return ev.Rule == declared.Name && ev.Key == key && o.edge(declared, o.clock(ev.at)).Equal(o.edge(declared, o.clock(at)))
	}
	share := func(percent int, limit int64) int64 { return int64(percent) * limit }
	for i, ev := range o.told {
		declared := rules[ev.Rule]
		if declared == nil || declared.Period == rule.NoPeriod || 100*ev.Used < int64(ev.Percent)*ev.Limit {
			o.wrong("a share is told that is used", "%+v", ev)
			continue
		}
		if o.program.roams(declared) {
			continue // a ledger has it
		}
		for _, before := range o.told[:i] {
			key, err := strconv.Atoi(ev.Key)
			if of(before, declared, ev.Key, ev.at) && before.Percent == ev.Percent && before.Limit == ev.Limit && err == nil &&
				!o.forgotten(use{Rule: slices.IndexFunc(o.program.Rules, func(r *runtime.Rule) bool { return r == declared }), Key: key}, before.at, ev.at) {
				o.wrong("a share is told once a period", "%+v at %v, after %v", ev.ThresholdEvent, ev.at, before.at)
			}
		}
	}
	if len(o.faults) > 0 || !o.exact || o.closed < endless {
		return // an answer may be lost
	}
	for _, a := range o.asked {
		if len(a.uses) != 1 || a.d.Source != rule.SourceStore || a.reported[0].verdict != observe.VerdictAdmitted || a.uses[0].Cost == 0 || a.d.Limit == 0 {
			continue
		}
		declared := o.program.Rules[a.uses[0].Rule]
		for _, percent := range []int{80, 100} {
			if declared.Period == rule.NoPeriod || o.program.roams(declared) || declared.Prefix == "shared:" || declared.Adaptive != nil || 100*(a.d.Limit-a.d.Remaining) < int64(percent)*a.d.Limit {
				continue
			}
			found := false
			for _, ev := range o.told {
				found = found || of(ev, declared, a.uses[0].name(), a.at) && share(ev.Percent, ev.Limit) >= share(percent, a.d.Limit)
			}
			if !found {
				o.wrong("a share that is used is told", "%d percent of %d, as #%d has seen (%s): %+v", percent, a.d.Limit, a.number, document.Fields(declared), o.told)
			}
		}
	}
}
