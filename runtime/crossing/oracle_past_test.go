package crossing

import (
	"fmt"
	"time"

	"github.com/rategen/rategen/internal/testkit/document"
)

// past holds what is kept of former periods against what was used: as many periods as are
// kept follow each other, and the count of one is final, whatever is settled later. Before
// the program nothing was used, and in it no more than calls have asked for.
func (o *oracle) past() {
	if len(o.jumps) > 0 || len(o.faults) > 0 {
		return // a key may be lost
	}
	type period struct {
		account string
		end     time.Time
	}
	final := map[period]int64{}
	asked := map[string]int64{} // by account
	account := func(u use) string { return fmt.Sprint(u.Rule, " ", u.Key) }
	for _, a := range o.asked {
		for i, u := range a.uses {
			asked[account(u)] += max(u.Cost, a.settledAt(i))
		}
	}
	for _, a := range o.asked {
		if a.usage == nil || a.usage.Past == nil {
			continue
		}
		past := a.usage.Past
		u, rule := a.uses[0], o.program.Rules[a.uses[0].Rule]
		if len(past) != int(rule.Keep) {
			o.wrong("as many periods as are kept are told", "#%d (%s): %+v", a.number, document.Fields(rule), past)
		}
		reset := false
		for _, r := range o.resets {
			reset = reset || r.rule == u.Rule && r.key == u.Key
		}
		for i, p := range past {
			if !p.Start.Before(p.End) || i > 0 && !p.End.Equal(past[i-1].Start) {
				o.wrong("former periods follow each other", "#%d (%s): %+v", a.number, document.Fields(rule), past)
			}
			if rule.Prefix == "shared:" || reset || o.program.roams(rule) { // a ledger has these
				continue
			}
			of := period{account(u), p.End.UTC()}
			if before, known := final[of]; known && before != p.Used {
				o.wrong("the count of a former period is final", "#%d (%s): %d used until %v, and %d before", a.number, document.Fields(rule), p.Used, p.End, before)
			}
			final[of] = p.Used
			if p.Used < 0 || p.Used > asked[of.account] && rule.Lease == 0 || p.Used > 0 && p.End.Before(o.began) {
				o.wrong("no more was used than asked for", "#%d (%s): %+v", a.number, document.Fields(rule), p)
			}
		}
	}
}

// settledAt returns what a use was settled at, or 0.
func (a *asked) settledAt(i int) int64 {
	if a.settled.tried && a.settled.cost[i] >= 0 {
		return a.settled.cost[i]
	}
	return 0
}
