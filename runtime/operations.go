package runtime

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/decide"
	"github.com/rategen/rategen/runtime/internal/report"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// Peek returns the decision that [Limiter.Take] would make now, without waiting and without
// charging anything. The error is non-nil if and only if there is no such decision:
// [ErrInvalidLimit], [ErrInvalidKey], [ErrUnavailable] or the context's. The kill switch,
// failure policies and the process cap have no effect on it.
func (l *Limiter) Peek(ctx context.Context, limits ...Limit) (d Decision, err error) {
	c := decide.NewCall(decide.Peek)
	defer c.Free()
	if err = l.engine.Plan(ctx, c, limits); err != nil || len(c.Charges) == 0 {
		d.Allowed = err == nil
		return d, err
	}
	if err = l.engine.Peek(ctx, c); err == nil {
		d.fill(c.Charges, c.Tries)
	}
	return d, err
}

// A Usage is how much is left of one limit to one caller. Its fields are those of a
// [observe.DecisionEvent] of a call of cost 1 that is not charged.
type Usage struct {
	Rule       string
	Mode       Mode
	Algorithm  Algorithm
	Period     rule.Period
	Window     time.Duration
	Limit, Max int64
	// Remaining is 0 for a caller in debt or blocked. With a [Rule.Lease] it has what this
	// process holds for all callers of the key.
	Remaining  int64
	RetryAfter time.Duration
	// ResetAfter of a rule with a Period is the time until that ends, by the clock of this
	// process if nothing is used.
	ResetAfter time.Duration
	Blocked    bool
	// Outgoing is [Rule.Outgoing].
	Outgoing bool
	// Past are the last [Rule.Keep] periods, the last one first.
	Past []PastPeriod
}

// A PastPeriod is a period of the calendar that is over. What was used of it is final: a charge
// that is settled or refunded later changes nothing there, and a debt that was carried counts
// in both periods. It is 0 of one in which nothing was charged, or of which the store has
// nothing.
type PastPeriod struct {
	Start, End time.Time // in the time zone of the caller
	Used       int64
}

// Usage returns how much is left of each limit, in their order, without charging anything and
// in one request to Redis. Costs have no effect. A limit that does not hold now is left out:
// none holds while the limiter is switched off or for a context of [WithoutLimits], an override
// may remove one, and one in [ModeShadow] mode may have a max of 0. The errors are those of
// [Limiter.Peek], and if there is one there are no usages.
func (l *Limiter) Usage(ctx context.Context, limits ...Limit) ([]Usage, error) {
	if !l.Enabled() || isExempt(ctx) {
		return nil, nil
	}
	var calls []*decide.Call
	for _, limit := range limits {
		c := decide.NewCall(decide.Peek)
		defer c.Free()
		if err := l.engine.Plan(ctx, c, []Limit{limit.WithCost(1)}); err != nil {
			return nil, err
		}
		if len(c.Charges) > 0 {
			calls = append(calls, c)
		}
	}
	if err := l.engine.Peek(ctx, calls...); err != nil {
		return nil, err
	}
	usages := make([]Usage, len(calls))
	for i, call := range calls {
		p, c := call.Charges[0].Plan, &call.Tries[0]
		r := p.Rule
		window, left := p.Numbers.Present()
		usages[i] = Usage{
			Rule: p.Name, Mode: r.Mode, Algorithm: r.Algorithm, Period: r.Period, Window: window,
			Limit: p.Capacity, Max: p.Max, Remaining: c.Remaining, RetryAfter: c.RetryAfter,
			ResetAfter: cmp.Or(c.ResetAfter, left), Blocked: c.Blocked, Outgoing: r.Outgoing,
		}
		if c.Past != nil {
			period := p.Numbers.Period
			for _, n := range c.Past.Last(period, int(r.Keep)) {
				usages[i].Past = append(usages[i].Past, PastPeriod{period.Time(n.Begin), period.Time(n.End), n.Used})
			}
		}
	}
	return usages, nil
}

// An Outcome is the result of one limit of [Limiter.TakeEach]: what [Limiter.Take] returns for
// it.
type Outcome struct {
	Decision
	Err error
}

// String says what was decided, and nothing of who called.
func (o Outcome) String() string {
	if o.Err == nil {
		return o.Decision.String()
	}
	return o.Decision.String() + ": " + o.Err.Error()
}

// TakeEach decides each limit as a call of its own, in order, and in one request to Redis for
// every 128. A rule's Wait has no effect. The outcomes are in the order of the limits.
func (l *Limiter) TakeEach(ctx context.Context, limits ...Limit) []Outcome {
	outcomes := make([]Outcome, len(limits))
	if !l.Enabled() || isExempt(ctx) {
		for i := range outcomes {
			outcomes[i].Allowed = true
		}
		return outcomes
	}
	paid := make([]paidCap, len(limits))
	arrived := clock.Now()
	var calls []*decide.Call
	var of []int // the limit of each
	for i := range limits {
		c, out := decide.NewCall(decide.Take), &outcomes[i]
		defer c.Free()
		if out.Err = l.engine.Plan(ctx, c, limits[i:i+1]); out.Err != nil {
			continue
		}
		if l.processCap != nil && !decide.Unsatisfiable(c.Charges) {
			if out.Err = l.chargeCap(ctx, &paid[i], &out.Decision); out.Err != nil {
				continue
			}
		}
		if len(c.Charges) == 0 {
			out.Err = l.finish(ctx, (*decide.Tried)(c), limits[i:i+1], nil, &out.Decision)
			l.end(ctx, c, nil)
			continue
		}
		c.Begin(ctx, 0, arrived)
		calls, of = append(calls, c), append(of, i)
	}
	for k, err := range l.engine.DecideEach(ctx, calls) {
		i := of[k]
		outcomes[i].Err = l.finish(ctx, (*decide.Tried)(calls[k]), limits[i:i+1], err, &outcomes[i].Decision)
	}
	for i := range outcomes {
		if out := &outcomes[i]; out.Err != nil {
			l.processCap.giveBack(&paid[i])
			out.Err = l.refusalError(ctx, out.Err)
		}
	}
	return outcomes
}

// Reset forgets everything about the key of one limit, in the store and in this process: its
// next call finds the limit whole.
func (l *Limiter) Reset(ctx context.Context, limit Limit) error {
	if err := rule.Engine.CheckPrefix(limit.Rule); err != nil {
		return err
	}
	if err := keyError(&limit); err != nil {
		return err
	}
	p := l.plans.Label(&limit)
	key := p.AppendKey(nil, rule.Engine.PartsOf(&limit).Bytes())
	defer l.ledger.Lines.Wake(key, 1)
	err := l.engine.Reset(ctx, p, key)
	if p.Rule.Hold && err == nil {
		err = l.peers.Forget(ctx, key)
	}
	return err
}

// Hold refuses all calls on the key of a limit for d, from now on by the clock of the store and
// on every replica: a peer that the calls go to has asked for that. It takes one trip. A key
// that is blocked for longer already stays so. The limit's rule has a [Rule.Hold], or it is
// [ErrInvalidLimit]. Package rateclient holds for HTTP.
//
// Calls that a hold refuses have the time until it ends as their RetryAfter, and those that may
// wait for so long do. The hold does not change what is counted. [Limiter.Release] ends it, and
// [Limiter.Reset] does too.
func (l *Limiter) Hold(ctx context.Context, limit Limit, d time.Duration) error {
	if d < time.Microsecond || d > rule.MaxWindow {
		return fmt.Errorf("%w: a hold for %v is not between 1µs and 366 days", ErrInvalidLimit, d)
	}
	return l.hold(ctx, limit, d)
}

// Release ends a hold, or another block, of the key of a limit, and forgets what a peer has said
// about it: calls need not go on evenly. Another replica may refuse calls for a moment more, see
// [WithRefusalMemory].
func (l *Limiter) Release(ctx context.Context, limit Limit) error { return l.hold(ctx, limit, 0) }

// keyError returns why the limit has no key, or nil.
func keyError(l *Limit) error {
	if l.Rule != nil && l.Rule.Invalid == rule.InvalidShare {
		return nil
	}
	return rule.Engine.PartsOf(l).Err()
}

func (l *Limiter) hold(ctx context.Context, limit Limit, d time.Duration) error {
	if err := keyError(&limit); err != nil {
		return err
	}
	p, err := l.plans.ForHold(&limit)
	if err != nil {
		return err
	}
	if !p.Rule.Hold {
		return fmt.Errorf("%w: rule %q has no Hold", ErrInvalidLimit, p.Name)
	}
	key := p.AppendKey(nil, rule.Engine.PartsOf(&limit).Bytes())
	err = l.engine.Hold(ctx, p, key, d)
	if d == 0 {
		l.ledger.Lines.Wake(key, 1)
	}
	if d == 0 && err == nil {
		err = l.peers.Forget(ctx, key)
	}
	for _, o := range l.events.Observers {
		report.NotifyWith(l.events, ctx, o.Hold, observe.HoldEvent{Rule: p.Name, For: d, Err: err})
	}
	return err
}
