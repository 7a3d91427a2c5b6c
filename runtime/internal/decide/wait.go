package decide

import (
	"context"
	"slices"
	"time"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/recall"
	"github.com/rategen/rategen/runtime/internal/report"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// poll is how often a call that waits looks whether what nobody tells it of has changed:
// the kill switch and the load.
const poll = 50 * time.Millisecond

// joins has a call that arrives join those of this process that wait for the same room. It returns
// false if there are none, or if a limit is known to refuse the call for longer than it may wait.
func (e *Engine) joins(ctx context.Context, c *Call) bool {
	if Unsatisfiable(c.Charges) || e.knownToRefuse(ctx, c) {
		return false
	}
	for i := range c.Charges {
		o, t := &c.Charges[i], &c.Tries[i]
		if t.Is(algorithm.Queues) || t.Deferred || t.Shadow || t.Wait <= 0 || t.Cost == 0 {
			continue
		}
		c.place = e.Lines.JoinExisting(o.Key, o.Max, t.Cost, t.Wait)
		if c.place == nil {
			continue
		}
		c.waitEnd = c.Arrived + t.Wait
		if e.storeRefuses(ctx, c) {
			c.place.Leave(false)
			c.place = nil
			return false
		}
		return true
	}
	return false
}

// storeRefuses reports whether another limit than the one whose line a call has joined refuses it for
// longer than it may wait, of which this process may know nothing: the store is asked, once for each wait.
func (e *Engine) storeRefuses(ctx context.Context, c *Call) bool {
	if len(c.Charges) == 1 || e.InProcess != nil || e.Store == nil {
		return false
	}
	calls := []terms.Call{{Charges: c.Tries, Arrived: c.Arrived}}
	return e.Store.Peek(ctx, calls) == nil && calls[0].Err == nil && (*Tried)(c).lacksForLong()
}

// lacksForLong reports whether a limit refuses a call for longer than it may wait.
func (c *Tried) lacksForLong() bool {
	if terms.Admitted(c.Tries) {
		return false
	}
	_, waits := c.lack()
	return !waits
}

// knownToRefuse reports whether this process knows that a limit refuses a call for longer than it may
// wait.
func (e *Engine) knownToRefuse(ctx context.Context, c *Call) (known bool) {
	calls := []terms.Call{{Charges: c.Tries, Arrived: c.Arrived}}
	if e.Refusals != nil {
		known = e.Refusals.Call(&calls[0], c.Arrived, recall.Rechecked)
	} else if e.InProcess != nil {
		known = e.InProcess.Peek(ctx, calls) == nil && calls[0].Err == nil
	}
	return known && (*Tried)(c).lacksForLong()
}

// join has a refused call join the line for what it lacks. It returns false if that is full.
func (c *Tried) join(w lack) bool {
	o, t, now := &c.Charges[w.charge], &c.Tries[w.charge], clock.Now()
	room := now + t.RetryAfter
	if c.lends(w) {
		room = 0
	}
	c.place = c.engine.Lines.Join(c.place, o.Key, o.Max, t.Cost, now+w.pause, room)
	if c.place == nil {
		c.engine.Events.Log.Find(report.LineFull, o.Plan.Name, "")
		return false
	}
	if c.cameBack(w) { // who gives something back from now on wakes it
		c.place.Hurry()
	}
	c.waitEnd = max(w.waitEnd, room)
	return true
}

// cameBack reports whether this process has given room back since a call asked for some, of which
// nobody could tell it: it was not in line yet. Of permits a store in this process, for which calls have claims, has
// answered before.
func (c *Tried) cameBack(w lack) bool {
	key := c.Charges[w.charge].Key
	if c.lends(w) {
		return len(c.claims) == 0 && c.engine.Permits.Count(key) < c.Tries[w.charge].More
	}
	return c.engine.Lines.RoomCount(key) != c.roomCounts[w.charge]
}

// awaitRoom waits in the line that the call has joined. It leaves the line if the context ends, or if
// no call is to wait any more.
func (w *waiting) awaitRoom(ctx context.Context, limits []rule.Limit) (event, error) {
	(*Call)(w).release()
	err := w.place.Await(ctx, w.waitEnd, &waiter{w, ctx, slices.Clone(limits)}) // limits stay on their caller's stack
	if err == nil && w.engine.isClosed() {
		err = ErrClosed
	}
	if err != nil {
		w.leave()
		return ends, err
	}
	return wakes, nil
}

// A waiter is a call that waits for room.
type waiter struct {
	call   *waiting
	ctx    context.Context
	limits []rule.Limit
}

// Begin implements [ledger.Waiter].
func (w *waiter) Begin() { w.call.report(w.ctx) }

// Replaced implements [ledger.Waiter].
func (w *waiter) Replaced() <-chan struct{} { return w.call.overrides.Replaced() }

// Changed implements [ledger.Waiter].
func (w *waiter) Changed() bool { return !w.call.isCurrent(w.limits) }

// Closed implements [ledger.Waiter].
func (w *waiter) Closed() <-chan struct{} { return w.call.engine.Closed }

// Poll implements [ledger.Waiter].
func (w *waiter) Poll() time.Duration {
	if w.call.polls() {
		return poll
	}
	return 0
}

// awaitTurn waits for the turn of an admitted call in queues. A queue that becomes faster
// meanwhile brings the turn nearer, and one that is gone has none.
func (w *waiting) awaitTurn(ctx context.Context, limits []rule.Limit) (event, error) {
	began := clock.Now()
	for {
		changed, err := w.sleep(ctx, (*Tried)(w).Delay()-(clock.Now()-began))
		if err != nil {
			return ends, err
		}
		if !changed {
			return wakes, nil
		}
		passed := w.overrides.Until(clock.Now()) - began
		w.overrides = w.engine.Plans.Overrides()
		for i := range w.Charges {
			if t := &w.Tries[i]; t.Delay > passed {
				w.moveTurn(t, &limits[firstLimit(&w.Charges[i])], passed)
			}
		}
	}
}

// moveTurn moves the turn of a charge for a limit to the place that it has by what holds now. As
// many are before it as were when a part of its delay had passed.
func (w *waiting) moveTurn(t *terms.Charge, limit *rule.Limit, passed time.Duration) {
	p, on, err := w.engine.Plans.Plan(limit)
	if !on || !w.engine.Switch.Enabled() || err == nil && p.Terms.Shadow {
		t.Delay = 0
	} else if err == nil && t.Source != rule.SourceLocal && p.Max > 0 {
		rate := float64(p.Max) / float64(p.Terms.Window) * float64(t.Window) / float64(t.Max)
		if rate > 1 {
			t.Delay = passed + time.Duration(float64(t.Delay-passed)/rate)
			t.Terms = p.Terms
		}
	}
}

// sleep waits for d, or until what holds for a call may have changed, which it then
// reports. It returns early with the context's error when that ends first.
func (w *waiting) sleep(ctx context.Context, d time.Duration) (changed bool, err error) {
	if d <= 0 {
		return false, nil
	}
	if w.polls() {
		changed, d = d > poll, min(d, poll)
	}
	w.report(ctx)
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return changed, nil
	case <-w.overrides.Replaced():
		return true, nil
	case <-ctx.Done():
		return false, ctx.Err()
	case <-w.engine.Closed:
		return false, ErrClosed
	}
}

// isClosed reports whether no call is to wait any more.
func (e *Engine) isClosed() bool {
	select {
	case <-e.Closed:
		return true
	default:
		return false
	}
}

// isCurrent reports whether the plans of a call are still those that are in force.
func (w *waiting) isCurrent(limits []rule.Limit) bool {
	w.overrides = w.engine.Plans.Overrides()
	for i := range w.Charges {
		o := &w.Charges[i]
		if p, on, err := w.engine.Plans.Plan(&limits[firstLimit(o)]); err != nil || !on || p.Key != o.Plan.Key {
			return false
		}
	}
	return w.engine.Switch.Enabled()
}

// polls reports whether what holds may change, of which nobody tells: by the kill switch, or the load.
func (w *waiting) polls() bool {
	return w.engine.Polls || slices.ContainsFunc(w.Charges, func(o Charge) bool { return o.Plan.Adapts })
}

// report tells that a call begins to wait, unless it has waited before.
func (w *waiting) report(ctx context.Context) {
	if w.waitStart == 0 {
		w.waitStart, w.rule = max(clock.Now(), 1), w.longestRule()
		w.engine.Events.Waits(ctx, observe.WaitEvent{Rule: w.rule, Waiting: true})
	}
}

// End tells that a call waits no longer, if it has waited.
func (c *Call) End(ctx context.Context, admitted bool) {
	if c.waitStart != 0 {
		c.engine.Events.Waits(ctx, observe.WaitEvent{Rule: c.rule, Waited: clock.Now() - c.waitStart, Admitted: admitted})
		c.waitStart, c.rule = 0, ""
	}
}
