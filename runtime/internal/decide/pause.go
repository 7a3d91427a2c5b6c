package decide

import (
	"cmp"
	"math/bits"
	"math/rand/v2"
	"time"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rule"
)

// How long a call waits before it asks the store again whether another process has given
// something back: room, or permits, for which it asks more and more seldom unless the store says when.
const (
	roomPause       = time.Second
	permitPause     = 5 * time.Millisecond
	longPermitPause = 50 * time.Millisecond
)

func (w *waiting) leave() {
	o, t := w.inLine()
	w.place.Leave(false)
	w.place, w.permitPause = nil, 0
	w.leaveStore(o, t)
}

// leaveStore has the store know that no call of this process waits for a charge any more, whose call
// was in line for it. The charge may be nil.
func (w *waiting) leaveStore(o *Charge, t *terms.Charge) {
	if o != nil && t.Is(algorithm.Lends) && t.Source != rule.SourceLocal && w.engine.Lines.Empty(o.Key) {
		w.engine.Permits.Leave(o.Plan, o.Key)
	}
}

// permits returns the plan of the permits in whose line the call is, or nil.
func (w *waiting) permits() *plan.Plan {
	for i := range w.Charges {
		if o := &w.Charges[i]; o.Plan.Terms.Is(algorithm.Lends) && w.place.InLine(o.Key, o.Max) {
			return o.Plan
		}
	}
	return nil
}

// leaveGone takes the call out of the line for permits that it asks for no more by what holds now.
func (w *waiting) leaveGone(by *plan.Plan) {
	if by == nil || w.permits() != nil {
		return
	}
	key := w.place.Key()
	w.place.Pass()
	w.place, w.permitPause = nil, 0
	if w.engine.Lines.Empty(key) {
		w.engine.Permits.Leave(by, key)
	}
}

// pass takes a call that was decided, or failed to be, out of its line, and lets the next one ask. A store
// that has refused it gives a place to its process for each limit that had no room, though it may not wait for all.
func (w *waiting) pass(failed bool) {
	o, t := w.inLine()
	admitted := !failed && terms.Admitted(w.Tries)
	switch {
	case w.place == nil:
	case failed || o == nil || t.Shadow:
		w.place.Pass() // it needs no room
	case !admitted:
		w.place.Leave(!t.Allowed)
	default:
		w.place.Admitted(t.Remaining, clock.Now()+w.nextRoom(o, t))
	}
	w.place, w.permitPause = nil, 0
	for i := range w.Charges {
		c, t := &w.Charges[i], &w.Tries[i]
		inLine, refused := c == o && (!admitted || t.Shadow), !failed && t.Param != 0 && !t.Allowed
		if inLine || refused {
			w.leaveStore(c, t)
		}
	}
}

// inLine returns the charge for whose room the call is in a line, or nil.
func (w *waiting) inLine() (*Charge, *terms.Charge) {
	for i := range w.Charges {
		if o := &w.Charges[i]; w.place.InLine(o.Key, o.Max) {
			return o, &w.Tries[i]
		}
	}
	return nil, nil
}

// nextRoom returns after how long to ask again when an admitted charge has left nothing: when
// there is room at the earliest, or at once where the store alone knows. Permits that are all of this
// process come back here.
func (w *waiting) nextRoom(o *Charge, t *terms.Charge) time.Duration {
	if t.Is(algorithm.Lends) {
		if w.engine.Permits.Count(o.Key)+o.Cost >= t.Max {
			return longPermitPause
		}
		return permitPause
	}
	if t.Is(algorithm.Resets) {
		return min(t.ResetAfter, roomPause)
	}
	return min(t.MoreAfter, roomPause)
}

// A lack is the room that a refused call waits for.
type lack struct {
	charge  int           // which has none for longest
	pause   time.Duration // until the store is to be asked again
	waitEnd time.Duration // the instant until which the call may wait
}

// Pause returns how long a refused call waits before it is decided again if nobody tells it of room,
// and whether every limit that refused it allows that wait. It returns 0 if the call waits for
// permits: nobody knows when they are returned.
func (c *Tried) Pause() (pause time.Duration, ok bool) {
	w, ok := c.lack()
	if !ok || c.lends(w) {
		return 0, ok
	}
	t := &c.Tries[w.charge]
	if t.Blocked && t.Holds {
		return w.pause, true // it may be released
	}
	return t.RetryAfter, true
}

func (c *Tried) lends(w lack) bool { return c.Tries[w.charge].Is(algorithm.Lends) }

// lack returns what a refused call lacks, and whether every limit that refused it allows to wait for
// that. A queue has taken the wait into account already. Of permits nobody knows when they
// are returned: they come last.
func (c *Tried) lack() (w lack, ok bool) {
	if terms.Admitted(c.Tries) {
		return w, false
	}
	w.charge, w.waitEnd = -1, Never
	var longest *terms.Charge
	for i := range c.Tries {
		t := &c.Tries[i]
		if t.Allowed || t.Shadow {
			continue
		}
		permits, o := t.Is(algorithm.Lends), &c.Charges[i]
		if permits && (t.Wait <= 0 || t.RetryAfter == Never) || !permits && (t.RetryAfter > t.Wait || t.Is(algorithm.Queues) && !t.Blocked) {
			return w, false
		}
		if longest == nil || permits && longest.Is(algorithm.Lends) && c.place.InLine(o.Key, o.Max) || !permits && (longest.Is(algorithm.Lends) || t.RetryAfter > longest.RetryAfter) {
			w.charge, longest = i, t
		}
		w.waitEnd = min(w.waitEnd, c.Arrived+t.Wait)
	}
	if !longest.Is(algorithm.Lends) {
		w.pause = min(longest.RetryAfter, roomPause)
		return w, true
	}
	c.permitPause = min(max(permitPause, 2*c.permitPause), longPermitPause)
	pause := cmp.Or(longest.Delay, c.permitPause)
	w.pause = pause*3/4 + rand.N(max(1, pause/4))
	return w, true
}

// Delay returns how long an admitted call must wait for its turn. A shadow
// queue delays nobody.
func (c *Tried) Delay() time.Duration {
	longest := time.Duration(0)
	for i := range c.Tries {
		if t := &c.Tries[i]; t.Allowed && !t.Shadow {
			longest = max(longest, t.Delay)
		}
	}
	return longest
}

// longestRule returns the name of the rule for which a call has to wait longest. It is in
// a line for one.
func (w *waiting) longestRule() (rule string) {
	longest := time.Duration(-1)
	for i := range w.Charges {
		o, t := &w.Charges[i], &w.Tries[i]
		if w.place.InLine(o.Key, o.Max) {
			return o.Plan.Name
		}
		wait := t.Delay
		if !t.Allowed {
			wait = t.RetryAfter
		}
		if !t.Shadow && wait > longest {
			rule, longest = o.Plan.Name, wait
		}
	}
	return rule
}

// firstLimit returns which limit of the call is the first that a charge is for.
func firstLimit(c *Charge) int { return bits.TrailingZeros8(c.Limits) }
