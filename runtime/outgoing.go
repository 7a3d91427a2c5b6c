package runtime

import (
	"context"
	"time"

	"github.com/rategen/rategen/runtime/internal/decide"
	"github.com/rategen/rategen/runtime/internal/ledger"
)

func (l lent) Try(ctx context.Context, into any, waited time.Duration, mayWait func() bool, limits ...Limit) (again bool, err error) {
	d := into.(*Decision)
	if !l.Enabled() || anyExempt.Load() && isExempt(ctx) {
		d.Allowed = true
		return false, nil
	}
	c := decide.NewCall(decide.Take)
	defer c.Free()
	c.WaitedBefore, c.MayWait = waited, mayWait
	var paid paidCap
	if err = l.takeFor(ctx, c, limits, &paid, d); err != nil {
		l.processCap.giveBack(&paid)
	}
	if err == ledger.ErrNoRoom {
		return true, nil
	}
	return false, l.refusalError(ctx, err)
}

func (l lent) Closed() <-chan struct{} { return l.closed }

func (l lent) Refuse(ctx context.Context, err error) error { return l.refusalError(ctx, err) }
