package decide

import (
	"context"
	"slices"
	"time"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/denials"
	"github.com/rategen/rategen/runtime/internal/ledger"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rule"
)

// poll is how often a call that waits looks whether what nobody tells it of has changed:
// the kill switch and the load.
const poll = 50 * time.Millisecond

// A Switch says whether limits are in force at all.
type Switch interface {
	Enabled() bool
}

// A Listener learns of calls that wait.
type Listener interface {
	Waits(context.Context, WaitEvent)
	// Crowded says that a call may not wait, since too many do for room of its plan.
	Crowded(*plan.Plan)
}

// A WaitEvent is that a call begins to wait, or waits no longer. Its fields are those of package
// runtime, which says what each means.
type WaitEvent struct {
	Rule     string
	Waiting  bool
	Waited   time.Duration
	Admitted bool
}

// A Setting is what a call that may wait goes by.
type Setting struct {
	// Lines are where it waits for room.
	Lines *ledger.Lines
	// Listener learns that the call waits.
	Listener Listener
	// Plans say what its limits mean now.
	Plans *plan.Plans
	// Overrides were in force when the charges were made, or nil.
	Overrides *plan.OverrideSet
	// Switch switches all limits off.
	Switch Switch
	// Closed is closed when no call is to wait any more.
	Closed <-chan struct{}
	// Polls says that the program may do so, and that nobody tells when.
	Polls bool
}

// Line has a call that arrives wait behind those of this process that wait for the same room. It
// returns at once if there are none, or if a limit is known to deny the call for longer than it may
// wait. The error is the context's, or [ErrClosed].
func (e *Engine) Line(ctx context.Context, c *Call, limits []rule.Limit) error {
	if Unsatisfiable(c.Charges) || e.knownToRefuse(ctx, c) {
		return nil
	}
	for i := range c.Charges {
		o, t := &c.Charges[i], &c.Tries[i]
		if t.Algorithm.Is(algorithm.Queues) || t.Deferred || t.Shadow || t.Wait <= 0 || t.Cost == 0 {
			continue
		}
		if c.turn = c.Lines.JoinExisting(o.Key, o.DeclaredMax, t.Cost, t.Wait); c.turn != nil {
			return c.awaitRoom(ctx, limits, c.Arrived+t.Wait)
		}
	}
	return nil
}

// knownToRefuse reports whether this process knows that a limit denies a call for longer than it may
// wait.
func (e *Engine) knownToRefuse(ctx context.Context, c *Call) (known bool) {
	calls := []terms.Call{{Charges: c.Tries, Arrived: c.Arrived}}
	switch {
	case e.Denials != nil:
		known = e.Denials.Call(&calls[0], c.Arrived, denials.Rechecked)
	case e.InProcess != nil:
		known = e.InProcess.Peek(ctx, calls) == nil && calls[0].Err == nil
	}
	if !known || terms.Admitted(c.Tries) {
		return false
	}
	_, waits := c.lack()
	return !waits
}

// Await has a denied call wait in the line for the room that comes last, until the store is to be
// asked again. It returns false at once if the limits of the call let it wait no more, if it was
// admitted, or if the line is full. The error is the context's, or [ErrClosed].
func (c *Call) Await(ctx context.Context, limits []rule.Limit) (waits bool, err error) {
	w, waits := c.lack()
	if !waits {
		return false, nil
	}
	o, t, now := &c.Charges[w.charge], &c.Tries[w.charge], clock.Now()
	due, room := now+w.pause, now+t.RetryAfter
	if t.Algorithm.Is(algorithm.Lends) {
		room = 0
	}
	c.turn = c.Lines.Join(c.turn, o.Key, o.DeclaredMax, t.Cost, due, room)
	if c.turn == nil {
		c.Listener.Crowded(o.Plan)
		return false, nil
	}
	return true, c.awaitRoom(ctx, limits, max(w.until, room))
}

// awaitRoom waits in the line that the call has joined, until an instant at most. It leaves the
// line if the context ends, or if no call is to wait any more.
func (c *Call) awaitRoom(ctx context.Context, limits []rule.Limit, until time.Duration) error {
	c.Again = true
	err := c.turn.Await(ctx, until, &waiter{c, ctx, slices.Clone(limits)}) // limits stay on their caller's stack
	if err == nil && c.isClosed() {
		err = ErrClosed
	}
	if err != nil {
		c.Leave()
	}
	return err
}

// A waiter is a call that waits for room.
type waiter struct {
	call   *Call
	ctx    context.Context
	limits []rule.Limit
}

// Begin implements [ledger.Waiter].
func (w *waiter) Begin() { w.call.reportWait(w.ctx) }

// Replaced implements [ledger.Waiter].
func (w *waiter) Replaced() <-chan struct{} { return w.call.Overrides.Replaced() }

// Changed implements [ledger.Waiter].
func (w *waiter) Changed() bool { return !w.call.isCurrent(w.limits) }

// Closed implements [ledger.Waiter].
func (w *waiter) Closed() <-chan struct{} { return w.call.Setting.Closed }

// Poll implements [ledger.Waiter].
func (w *waiter) Poll() time.Duration {
	if w.call.Polls || w.call.hasAdaptive() { // which tell nobody
		return poll
	}
	return 0
}

// AwaitTurn waits for the turn of an admitted call in queues. A queue that becomes faster
// meanwhile brings the turn nearer, and one that is gone has none. The error is the context's, or [ErrClosed].
func (c *Call) AwaitTurn(ctx context.Context, limits []rule.Limit) error {
	began := clock.Now()
	for {
		changed, err := c.sleep(ctx, c.Delay()-(clock.Now()-began))
		if err != nil || !changed {
			return err
		}
		passed := c.Overrides.Until(clock.Now()) - began
		c.Overrides = c.Plans.Overrides()
		for i := range c.Charges {
			if t := &c.Tries[i]; t.Delay > passed {
				c.moveTurn(t, &limits[firstLimit(&c.Charges[i])], passed)
			}
		}
	}
}

// moveTurn moves the turn of a charge for a limit to the place that it has by what holds now. As
// many are before it as were when a part of its delay had passed.
func (c *Call) moveTurn(t *terms.Charge, limit *rule.Limit, passed time.Duration) {
	p, on, err := c.Plans.Plan(limit)
	if !on || !c.Switch.Enabled() || err == nil && p.Terms.Shadow {
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
func (c *Call) sleep(ctx context.Context, d time.Duration) (changed bool, err error) {
	if d <= 0 {
		return false, nil
	}
	if c.Polls || c.hasAdaptive() { // which tell nobody
		changed, d = d > poll, min(d, poll)
	}
	c.reportWait(ctx)
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return changed, nil
	case <-c.Overrides.Replaced():
		return true, nil
	case <-ctx.Done():
		return false, ctx.Err()
	case <-c.Closed:
		return false, ErrClosed
	}
}

// isClosed reports whether no call is to wait any more.
func (s *Setting) isClosed() bool {
	select {
	case <-s.Closed:
		return true
	default:
		return false
	}
}

// isCurrent reports whether the plans of a call are still those that are in force.
func (c *Call) isCurrent(limits []rule.Limit) bool {
	c.Overrides = c.Plans.Overrides()
	for i := range c.Charges {
		o := &c.Charges[i]
		if p, on, err := c.Plans.Plan(&limits[firstLimit(o)]); err != nil || !on || p.Key != o.Plan.Key {
			return false
		}
	}
	return c.Switch.Enabled()
}

// reportWait tells that a call begins to wait, unless it has waited before.
func (c *Call) reportWait(ctx context.Context) {
	if c.waitStart == 0 {
		c.waitStart, c.rule = max(clock.Now(), 1), c.longestRule()
		c.Listener.Waits(ctx, WaitEvent{Rule: c.rule, Waiting: true})
	}
}

// End tells that a call waits no longer, if it has waited.
func (c *Call) End(ctx context.Context, admitted bool) {
	if c.waitStart != 0 {
		c.Listener.Waits(ctx, WaitEvent{Rule: c.rule, Waited: clock.Now() - c.waitStart, Admitted: admitted})
		c.waitStart, c.rule = 0, ""
	}
}
