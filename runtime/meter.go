package runtime

import (
	"context"
	"fmt"
	"io"
	"math/bits"
	"time"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/runtime/internal/decide"
	"github.com/rategen/rategen/runtime/internal/ledger"
)

// A Meter charges a call while it runs: a stream, message by message, until its limits have no
// room for the next one. It takes units in advance, so that few messages need a trip to the
// store: what the call uses in about a second, and no more than an eighth of what is left of
// the limit. Units that nobody has used after a second are given back, and so is the rest by
// [Meter.Close]. It is safe for concurrent use.
type Meter struct{ meter ledger.LimitMeter }

// Meter returns a meter of a call that [Limiter.Take] of the same Limiter has admitted. It
// takes the decision over, which nobody else can settle then. What Take has charged counts as
// used, or so much of it as used says: used are those of the limits that Take was given, in
// that order, and one below 0 or missing is all. The rest is there for the first messages.
//
// Overrides, the load and the kill switch decide about a message as they are when it needs a
// trip. But a call that came while all limits were switched off, or was exempt, is not metered.
//
// The context is the call's. Where a Charge need not wait for its turn, its trip goes on when
// the context has ended, so that what it takes is known, and given back.
func (l *Limiter) Meter(ctx context.Context, d Decision, used ...int64) *Meter {
	m := new(Meter)
	k, err := d.kept(l)
	if d.owner == nil { // no limits
		l.ledger.Measure(ctx, &m.meter, nil, nil, l.takeMore)
	} else if err == nil && d.owner == l {
		l.ledger.Measure(ctx, &m.meter, &k, used, l.takeMore)
	} else {
		m.meter.Err = ErrOtherLimiter
	}
	return m
}

// Charge charges a call more: costs are those of the limits that Take was given, in that order,
// and a missing one is 0. All limits are charged, or none of them if one has no room for its
// cost. One at a cost of 0 is not asked. The error is that of [Limiter.Take], and what decides
// is the same: a limit in [ModeShadow] mode refuses nothing, the failure policy decides where
// the store does not, and a Wait is how long Charge may take. A message that costs a
// [SlidingLog] more than [rule.MaxLogCost] is charged in parts, one request and one Wait after the
// other, and none of it if there is no room for the last one. A refusal is the end: every
// further Charge returns the same error. Without one that is [ErrSettled] after [Meter.Close].
// A [Concurrency] takes no costs.
//
// Where the store has less than Charge would take in advance, it is asked for exactly what is
// lacking, so that all of a budget can be used. A rule with a Block takes nothing in advance, nor
// does a queue, in which each message has a turn of its own. Observers see each trip as a
// decision, except one that was refused more than was lacking.
func (m *Meter) Charge(costs ...int64) error { return m.meter.Charge(costs, false) }

// Err returns the error by which the meter has ended, or nil.
func (m *Meter) Err() error { return m.meter.Ended() }

// Advance returns how much of the i-th limit can be charged without a trip now.
func (m *Meter) Advance(i int) int64 { return m.meter.Left(i) }

// Close ends the meter and gives back what was taken in advance, soon, as [Limiter.SettleLater]
// does. Costs, in the order of Take, settle the limits that Take alone has charged; the others
// have been charged what was used, and so has one with a Reserve that has refused a message.
// Permits of a [Concurrency] are returned. A second Close does nothing.
func (m *Meter) Close(costs ...int64) { m.meter.Close(costs) }

// Reader returns a reader of r that ends at the last byte that is paid, with the error of
// [Meter.Charge]. Cost returns what n bytes cost. It is called for each read, and for
// fewer bytes where the limits have no room for all, and must not fall as n grows. The reader
// closes the meter when r ends or it is closed itself, which closes r if that is an
// [io.Closer].
func (m *Meter) Reader(r io.Reader, cost func(n int) []int64) io.ReadCloser {
	return &ledger.MeterReader{From: r, End: func() { m.Close() }, Pay: func(n int, try bool) error {
		return m.meter.Charge(cost(n), try)
	}}
}

// takeMore implements [ledger.TakeMore], for a call that the cap of the process has admitted.
func (l *Limiter) takeMore(call context.Context, limits []Limit, wants []ledger.Want, try bool) (err error) {
	if !l.Enabled() {
		return nil
	}
	ctx, waits := context.WithValue(call, exceededKey{}, nil), false // it was told with its first charge
	for i := range limits {
		if algorithm.RowOf(limits[i].Rule.Algorithm).Lacks["meter"] != "" {
			return l.refusalError(call, fmt.Errorf("%w: rule %q: the permits of a call cannot grow", ErrInvalidLimit,
				limits[i].Rule.Name))
		}
		p, _, _ := l.plans.Plan(&limits[i])
		waits = waits || p != nil && p.Wait > 0
	}
	if try || !waits {
		var cancel context.CancelFunc
		ctx, cancel = l.meterContext(ctx)
		defer cancel()
	}
	what := decide.Take
	if try {
		what = decide.Attempt
	}
	c := decide.NewCall(what)
	defer c.Free()
	var d Decision
	if err = l.engine.Plan(ctx, c, limits); err == nil {
		err = l.take(ctx, c, limits, &d)
	}
	if err == ledger.ErrNoRoom {
		return err // nobody was refused
	}
	if err != nil {
		return l.refusalError(call, err)
	}
	for i := range c.Tries { // each of one limit
		wants[bits.TrailingZeros8(c.Charges[i].Limits)].Room = c.Tries[i].Remaining
	}
	k, _ := d.kept(l)
	for i := range wants {
		w := &wants[i]
		cost := w.Cost
		_, w.Made, _ = k.Charge(i)
		w.Cost, w.Lapses = cost, limits[i].Rule.Reserve > 0
	}
	return nil
}

// meterContext returns a context for a trip that goes on when the call's has ended. A store that
// does not bound it then has [SettleTimeout] left.
func (l *Limiter) meterContext(ctx context.Context) (context.Context, context.CancelFunc) {
	if l.store.builtIn {
		return l.settleContext(ctx)
	}
	trip, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(SettleTimeout, cancel) })
	return trip, func() { stop(); cancel() }
}
