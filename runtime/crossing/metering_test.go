package crossing

import (
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/rategen/rategen/internal/testkit/document"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// A metering is how a call that was admitted is charged while it runs.
type metering struct {
	Advance  bool // what Take has charged is there for the first messages
	Messages []message
	Every    time.Duration // between messages
}

// A message costs something of each rule.
type message [3]int64

// drawMeter draws the messages of a call. Permits cannot grow.
func (s *scope) drawMeter(t *rapid.T, p *program, uses []use) *metering {
	m := &metering{Every: s.drawGap(t, p)}
	m.Advance = !holdsPermits(p, uses) && rapid.Bool().Draw(t, "in advance")
	for range rapid.IntRange(1, 12).Draw(t, "messages") {
		var costs message
		for i, r := range p.Rules {
			if r.Algorithm != runtime.Concurrency {
				costs[i] = rapid.SampledFrom([]int64{1, 1, 2, 3, 5, 0}).Draw(t, "message's cost")
				if dear(r) && rapid.Bool().Draw(t, "dear message") {
					costs[i] = rapid.Int64Range(1, r.Max).Draw(t, "its cost")
				}
			}
		}
		m.Messages = append(m.Messages, costs)
	}
	return m
}

// dear reports whether a message may cost a rule more than it can be charged at once.
func dear(r *runtime.Rule) bool {
	return r.Algorithm == runtime.SlidingLog && r.Max >= rule.MaxLogCost
}

// meters holds messages that passed and were charged to nothing against what may be the cause.
func (o *oracle) meters() {
	for _, a := range o.unasked {
		if o.isOff(o.asked[a.number]) || o.asked[a.number].call.Exempt {
			continue // such a call is not metered
		}
		u := a.uses[0]
		all := o.terms(u, min(a.start, o.closed), a.end) // a limiter that is closed stays with what was in force then
		if !slices.ContainsFunc(all, func(t terms) bool { return t.off || !t.mode.Refuses() }) {
			o.wrong("what passes is charged", "#%d, %v at %v (%s)", a.number, u, a.start, document.Fields(o.program.Rules[u.Rule]))
		}
	}
}
