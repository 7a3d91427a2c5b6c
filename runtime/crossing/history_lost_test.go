package crossing

import (
	"slices"
	"time"

	"github.com/rategen/rategen/runtime/rule"
)

// lost reports whether a server may have lost all keys between two times.
func (h *history) lost(from, to time.Duration) bool {
	return slices.ContainsFunc(during(h.faults, from, to), func(f *happening) bool { return f.fault == flushed || f.fault == killed })
}

// forgotten reports whether a key may have been forgotten between two times.
func (h *history) forgotten(u use, from, to time.Duration) bool {
	for _, r := range during(h.resets, from, to) {
		if h.program.alike(r.rule, u.Rule) && r.key == u.Key {
			return true
		}
	}
	if h.lost(from, to) {
		return true
	}
	// When a clock has stepped back to more than a window before the newest event, nothing
	// counts of before.
	back, window := time.Duration(0), endless
	for _, j := range during(h.jumps, from, to) {
		back = max(back, h.latest(j.from).Sub(h.clock(j.from)))
	}
	for _, t := range h.terms(u, from, to) {
		window = min(window, time.Duration(t.window)*time.Microsecond)
	}
	return h.program.Rules[u.Rule].Period == rule.NoPeriod && back > window-h.program.Rules[u.Rule].Resolution
}
