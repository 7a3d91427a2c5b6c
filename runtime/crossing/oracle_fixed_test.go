package crossing

import (
	"math"
	"time"
)

// fixedWindows holds a fixed window against its max: a window begins with its first event, and
// the next event after its end begins another one. The bound of twice the max, in any time as
// long as a window, would hide a window that never ends, or ends early.
//
// It gives up where nobody knows which event began a window: when the key was forgotten, a call
// that left may have charged it, a settlement took more, or the window has changed. A lease
// begins a window that nobody sees, and a reservation may come back.
func (o *oracle) fixedWindows(name string, charges []charge) {
	u := charges[0].uses[charges[0].use]
	rule := o.program.Rules[u.Rule]
	if rule.Lease > 0 || rule.Reserve > 0 || len(o.jumps) > 0 || o.unclear(u) {
		return
	}
	window := time.Duration(o.terms(u, 0, 0)[0].window) * time.Microsecond
	var earliest, latest time.Duration // when the window began
	var in []charge
	for i, c := range charges {
		from := c.from(o.history)
		if i > 0 && c.at < earliest+window {
			latest = min(latest, c.at)
		} else if i > 0 && from < latest+window {
			return // it may be of either window
		} else {
			earliest, latest, in = from, c.at, nil
			for _, d := range charges[i:] { // one of those at the same time was the first
				if d.from(o.history) <= latest {
					earliest = min(earliest, d.from(o.history))
				}
			}
		}
		in = append(in, c)
		sum := int64(0)
		for _, d := range in {
			sum += d.real(d.use, c.at)
		}
		if most := o.loosest(in, earliest, c.at).max; sum > most {
			o.wrong("a fixed window holds no more than max", "%s (%s) at #%d: %d admitted in the window that began at %v, the most is %d", name, ruleText(rule), c.number, sum, earliest, most)
			return
		}
	}
}

// unclear reports whether it is not known of a key which of its events began a window.
func (o *oracle) unclear(u use) bool {
	if o.forgotten(u, 0, math.MaxInt64) || len(during(o.faults, 0, o.ended)) > 0 {
		return true
	}
	windows := map[int64]bool{}
	for i := range o.program.Rules {
		if !o.program.alike(i, u.Rule) {
			continue
		}
		for _, t := range o.terms(use{Rule: i, Key: u.Key}, 0, o.ended) {
			windows[t.window] = true
		}
	}
	for _, c := range o.asked {
		for j, v := range c.uses {
			if v.Key != u.Key || !o.program.alike(v.Rule, u.Rule) {
				continue
			}
			if c.left() || c.settledAt(j) > v.Cost || o.parted(c, c) {
				return true
			}
		}
	}
	return len(windows) != 1
}
