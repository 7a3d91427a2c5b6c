package decide

import (
	"context"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
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
	// Permits has the lines for them.
	Permits *ledger.Permits
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

// Line has a call that arrives wait behind those that wait for the same permits already. It
// returns at once if there are none, or if the call can never be admitted. The error is the
// context's, or [ErrClosed].
func (c *Call) Line(ctx context.Context) error {
	if Unsatisfiable(c.Charges) {
		return nil
	}
	for i := range c.Charges {
		o, t := &c.Charges[i], &c.Tries[i]
		if t.Algorithm != terms.Permits || t.Shadow || t.Wait <= 0 {
			continue
		}
		if c.turn = c.Permits.JoinExisting(c.turn, o.Key, o.DeclaredMax); c.turn != nil {
			return c.await(ctx, t.Wait)
		}
	}
	return nil
}

// Await has a denied call wait for as long as its limits say, in the line for permits if they are
// all that it lacks, and no longer than the limits of the call mean what they did. It returns false
// at once if they let it wait no more, or if it was admitted. The error is the context's, or [ErrClosed].
func (c *Call) Await(ctx context.Context, limits []rule.Limit) (waits bool, err error) {
	pause, waits := c.Pause()
	if !waits {
		return false, nil
	}
	if c.Again = true; pause == 0 {
		return true, c.awaitPermits(ctx)
	}
	c.pass()
	limits = slices.Clone(limits) // which stay on their caller's stack
	for end := clock.Now() + pause; pause > 0; pause = end - clock.Now() {
		if changed, err := c.sleep(ctx, pause); err != nil || changed && !c.isCurrent(limits) {
			return true, err
		}
	}
	return true, nil
}

// await waits in the line that the call has joined, and leaves it if the context ends.
func (c *Call) await(ctx context.Context, wait time.Duration) error {
	c.Again = true
	err := c.turn.Await(ctx, wait, c.Closed, func() { c.reportWait(ctx) })
	if err == nil && c.isClosed() {
		err = ErrClosed
	}
	if err != nil {
		c.Leave()
	}
	return err
}

// awaitPermits waits until a call that was denied permits should ask the store again:
// at the latest when it may wait no longer, which is the time to be denied.
func (c *Call) awaitPermits(ctx context.Context) error {
	denied, wait := -1, Never
	for i := range c.Tries {
		t := &c.Tries[i]
		if t.Allowed || t.Shadow {
			continue
		}
		wait = min(wait, t.Wait)
		if o := &c.Charges[i]; denied < 0 || c.turn.InLine(o.Key, o.DeclaredMax) {
			denied = i
		}
	}
	o := &c.Charges[denied]
	c.turn = c.Permits.Join(c.turn, o.Key, o.DeclaredMax)
	return c.await(ctx, wait)
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
