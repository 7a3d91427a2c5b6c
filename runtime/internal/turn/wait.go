// Package turn has a call wait for its turn: until its limits have room, in a line for
// permits, or for as long as its place in a queue says.
//
// It is handed a call that was decided, and functions that tell what holds now. It promises
// that a call waits no longer than its rules and its context allow, and that what comes into
// force meanwhile counts. It never decides a call, and never says how long a rule lets one
// wait.
package turn

import (
	"context"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/decide"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// poll is how often a call that waits looks whether what nobody tells it of has changed:
// the kill switch and the load.
const poll = 50 * time.Millisecond

// Overrides are those in force at a moment.
type Overrides interface {
	// Replaced returns a channel that is closed when others have come into force.
	Replaced() <-chan struct{}
	// Until returns the instant of that, or now.
	Until(now time.Duration) time.Duration
}

// Now is what holds for the limits of a call at present.
type Now interface {
	// Overrides returns those in force.
	Overrides() Overrides
	// Enabled reports whether limits are.
	Enabled() bool
	// Plan returns the plan for the i-th limit, and false if that is not in force.
	Plan(i int) (p *plan.Plan, on bool, err error)
}

// A Listener learns of calls that wait.
type Listener interface {
	Waits(context.Context, Event)
}

// An Event is that a call begins to wait, or waits no longer. Its fields are those of package
// runtime, which says what each means.
type Event struct {
	Rule     string
	Waiting  bool
	Waited   time.Duration
	Admitted bool
}

// Line has a call that arrives wait behind those that wait for the same permits already. It
// returns at once, and false, if there are none, or if the call can never be admitted.
func (c *Call) Line(ctx context.Context) (waited bool, err error) {
	if decide.Unsatisfiable(c.Charges) {
		return false, nil
	}
	for i := range c.Charges {
		o, t := &c.Charges[i], &c.Tries[i]
		if t.Algorithm != terms.Permits || t.Shadow || t.Wait <= 0 {
			continue
		}
		if c.turn = c.Permits.Join(c.turn, o.Key, o.Own, true); c.turn != nil {
			return true, c.turn.Await(ctx, t.Wait, func() { c.begin(ctx) })
		}
	}
	return false, nil
}

// Await has a denied call wait for as long as its pause says, or in the line for permits if
// that is 0; and no longer than what holds for it. The error is the context's.
func (c *Call) Await(ctx context.Context, pause time.Duration, now Now) error {
	if pause == 0 {
		return c.awaitPermits(ctx)
	}
	c.Leave(true)
	for end := clock.Now() + pause; pause > 0; pause = end - clock.Now() {
		if changed, err := c.sleep(ctx, pause); err != nil || changed && !c.current(now) {
			return err
		}
	}
	return nil
}

// awaitPermits waits until a call that was denied permits should ask the store again:
// at the latest when it may wait no longer, which is the time to be denied.
func (c *Call) awaitPermits(ctx context.Context) error {
	denied, wait := -1, decide.Never
	for i := range c.Tries {
		t := &c.Tries[i]
		if t.Allowed || t.Shadow {
			continue
		}
		wait = min(wait, t.Wait)
		if o := &c.Charges[i]; denied < 0 || c.turn.For(o.Key, o.Own) {
			denied = i
		}
	}
	o := &c.Charges[denied]
	c.turn = c.Permits.Join(c.turn, o.Key, o.Own, false)
	return c.turn.Await(ctx, wait, func() { c.begin(ctx) })
}

// AwaitTurn waits for the turn of an admitted call in queues. A queue that becomes faster
// meanwhile brings the turn nearer, and one that is gone has none. The error is the context's.
func (c *Call) AwaitTurn(ctx context.Context, now Now) error {
	began := clock.Now()
	for {
		changed, err := c.sleep(ctx, c.Delay()-(clock.Now()-began))
		if err != nil || !changed {
			return err
		}
		passed := c.Overrides.Until(clock.Now()) - began
		c.Overrides = now.Overrides()
		for i := range c.Charges {
			if t := &c.Tries[i]; t.Delay > passed {
				hasten(t, limitOf(&c.Charges[i]), passed, now)
			}
		}
	}
}

// hasten moves the turn of a charge for a limit to the place that it has by what holds now. As
// many are before it as were when a part of its delay had passed.
func hasten(t *terms.Charge, limit int, passed time.Duration, now Now) {
	p, on, err := now.Plan(limit)
	switch {
	case !on || !now.Enabled() || err == nil && p.Terms.Shadow:
		t.Delay = 0
	case err == nil && t.Source != terms.ByLocal && p.Max > 0:
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
	if c.Polls || c.adapts() { // which tell nobody
		changed, d = d > poll, min(d, poll)
	}
	c.begin(ctx)
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return changed, nil
	case <-c.Overrides.Replaced():
		return true, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// current reports whether the plans of a call are still those that are in force.
func (c *Call) current(now Now) bool {
	c.Overrides = now.Overrides()
	for i := range c.Charges {
		o := &c.Charges[i]
		if p, on, err := now.Plan(limitOf(o)); err != nil || !on || p.Key != o.Plan.Key {
			return false
		}
	}
	return now.Enabled()
}

// begin tells that a call begins to wait, unless it has waited before.
func (c *Call) begin(ctx context.Context) {
	if c.since == 0 {
		c.since, c.rule = max(clock.Now(), 1), c.keptBy()
		c.Listener.Waits(ctx, Event{Rule: c.rule, Waiting: true})
	}
}

// End tells that a call waits no longer, if it has waited.
func (c *Call) End(ctx context.Context, admitted bool) {
	if c.since != 0 {
		c.Listener.Waits(ctx, Event{Rule: c.rule, Waited: clock.Now() - c.since, Admitted: admitted})
		c.since, c.rule = 0, ""
	}
}
