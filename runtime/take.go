package runtime

import (
	"context"

	"github.com/rategen/rategen/runtime/internal/decide"
	"github.com/rategen/rategen/runtime/internal/ledger"
)

// takeAll takes a call with any limits.
func (l *Limiter) takeAll(ctx context.Context, limits []Limit, paid *paidCap, d *Decision) error {
	c := decide.NewCall(decide.Take)
	defer c.Free()
	return l.takeFor(ctx, c, limits, paid, d)
}

// takeFor is takeAll in memory that its caller has.
func (l *Limiter) takeFor(ctx context.Context, c *decide.Call, limits []Limit, paid *paidCap, d *Decision) error {
	if err := l.engine.Plan(ctx, c, limits); err != nil {
		return err
	}
	if l.processCap != nil && !decide.Unsatisfiable(c.Charges) {
		if err := l.chargeCap(ctx, paid, d); err != nil {
			return err
		}
	}
	return l.take(ctx, c, limits, d)
}

// take has a planned call decided, and answers it when it is the call's turn.
func (l *Limiter) take(ctx context.Context, c *decide.Call, limits []Limit, d *Decision) error {
	t, err := l.engine.Run(ctx, c, limits)
	if t.State == decide.LeftQueue {
		l.leaveQueue(ctx, t, limits, Decision{})
	}
	if c.MayWait != nil && t.State == decide.Refused {
		d.fill(c.Charges, c.Tries)
		if c.MayWait() {
			return ledger.ErrNoRoom
		}
	}
	err = l.finish(ctx, t, limits, err, d)
	if err == nil && t.Delay() > 0 {
		if err = l.engine.AwaitTurn(ctx, t, limits); err != nil {
			l.leaveQueue(ctx, t, limits, *d)
			*d = Decision{}
		}
	}
	l.end(ctx, c, err)
	return err
}

// leaveQueue gives back the place in a queue, and all else, of a call that has left it. It was decided,
// or it was to be at its turn.
func (l *Limiter) leaveQueue(ctx context.Context, c *decide.Tried, limits []Limit, d Decision) {
	if d.flags == nil {
		c.AddFlag()
		d.keep(l, limits, c)
	}
	d.leftQueue = true
	_ = l.Refund(ctx, d)
}

// end reports what is known only when a call is over: that its wait has ended, and which shadow
// limits could never admit it. Err is why it does not go on, or nil.
func (l *Limiter) end(ctx context.Context, c *decide.Call, err error) {
	c.End(ctx, err == nil)
	l.engine.TellUnsatisfiable(ctx, c, err)
}
