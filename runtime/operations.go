package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/decide"
	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// Peek returns the decision that [Limiter.Take] would make now, without
// waiting and without charging anything. The error is non-nil if and only if
// there is no such decision: [ErrInvalidLimit], [ErrInvalidKey],
// [ErrUnavailable] or the context's. A denial is not an error here. The kill
// switch, failure policies, the process cap and a rule's Mode have no effect on
// the error.
func (l *Limiter) Peek(ctx context.Context, limits ...Limit) (Decision, error) {
	req := newRequest()
	defer req.free()
	for i := range limits {
		if err := limits[i].key.invalid(); err != nil {
			return Decision{}, err
		}
	}
	req.peeking = true
	if err := req.fill(ctx, l, limits); err != nil {
		return Decision{}, err
	}
	if len(req.Charges) == 0 {
		return Decision{Allowed: true}, nil
	}
	d := Decision{}
	if err := l.peek(ctx, req); err != nil {
		return d, err
	}
	d.fill(req.Charges, req.Tries)
	return d, nil
}

// peek finds out what the store would decide about each of some calls, if it alone came.
func (l *Limiter) peek(ctx context.Context, reqs ...*request) error {
	var open []*decide.Call
	for _, req := range reqs {
		// The store is not asked about a call that can never be admitted, unless a limit keeps counts of periods.
		if req.Begin(ctx, time.Time{}, clock.Now()); !decide.Unsatisfiable(req.Charges) || len(req.Tries) == 1 && req.Tries[0].Keep > 0 {
			open = append(open, &req.Call.Call)
		}
	}
	if len(open) > 0 {
		switch err := l.engine.Peek(ctx, open...); {
		case err != nil && ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return unavailableError{private.Hide(err)}
		}
	}
	for _, req := range reqs {
		if decide.Unsatisfiable(req.Charges) {
			l.engine.Known(ctx, &req.Call.Call)
		}
	}
	return nil
}

// A Usage is how much is left of one limit to one caller.
type Usage struct {
	// Rule is the rule's name.
	Rule string
	// Mode, Algorithm and Period are those of the rule with its overrides.
	Mode      Mode
	Algorithm Algorithm
	Period    Period
	// Window is the time that Max refers to. Of a rule with a Period it is how long the
	// present one is, by the clock of this process.
	Window time.Duration
	// Limit is the max that holds for the caller, or the burst of a bucket, and Max is how
	// much is admitted in a Window in the long run.
	Limit, Max int64
	// Remaining is how much of Limit is left, and 0 for a caller in debt or blocked. With a
	// [Rule.Lease] it has what this process holds for all callers of the key.
	Remaining int64
	// RetryAfter is the time until a call of cost 1 would be admitted if no other call
	// arrived: 0 if it would be now, or [Never].
	RetryAfter time.Duration
	// ResetAfter is the time until the limit is whole again if no other call arrived, 0 if
	// it is. Of a rule with a Period it is the time until that ends, by the clock of this
	// process if nothing is used.
	ResetAfter time.Duration
	// Blocked reports that the caller is blocked, see [Rule.Block] and [Rule.Hold].
	Blocked bool
	// Past are the last [Rule.Keep] periods, the last one first.
	Past []PastPeriod
}

// A PastPeriod is a period of the calendar that is over. What was used of it is final: a
// charge that is settled or refunded later changes nothing there, and a debt that was
// carried counts in both periods. It is 0 of one in which nothing was charged, or of which
// the store has nothing.
type PastPeriod struct {
	Start, End time.Time // in the time zone of the caller
	Used       int64
}

// Usage returns how much is left of each limit, in their order, without charging anything
// and in one request to Redis. Costs have no effect. A limit that does not hold now is left
// out: none holds while the limiter is switched off or for a context of [WithoutLimits], an
// override may remove one, and one in [ModeShadow] mode may have a max of 0. The errors
// are those of [Limiter.Peek], and if there is one there are no usages.
func (l *Limiter) Usage(ctx context.Context, limits ...Limit) ([]Usage, error) {
	if !l.Enabled() || isExempt(ctx) {
		return nil, nil
	}
	reqs := make([]*request, 0, len(limits))
	for _, limit := range limits {
		if err := limit.key.invalid(); err != nil {
			return nil, err
		}
		req := newRequest()
		defer req.free()
		req.peeking = true
		if err := req.fill(ctx, l, []Limit{limit.WithCost(1)}); err != nil {
			return nil, err
		}
		if len(req.Charges) > 0 {
			reqs = append(reqs, req)
		}
	}
	if err := l.peek(ctx, reqs...); err != nil {
		return nil, err
	}
	usages := make([]Usage, len(reqs))
	for i, req := range reqs {
		p, c := req.Charges[0].Plan, &req.Tries[0]
		rule := ruleOf(p)
		window, left := p.Numbers.Present()
		usages[i] = Usage{
			Rule: p.Name, Mode: rule.Mode, Algorithm: rule.Algorithm, Period: rule.Period, Window: window,
			Limit: p.Capacity, Max: p.Max, Remaining: c.Remaining, RetryAfter: c.RetryAfter, ResetAfter: cmp.Or(c.ResetAfter, left), Blocked: c.Blocked,
		}
		if c.Past != nil {
			period := p.Numbers.Period
			for _, n := range c.Past.Last(period, int(rule.Keep)) {
				usages[i].Past = append(usages[i].Past, PastPeriod{period.Time(n.Begin), period.Time(n.End), n.Used})
			}
		}
	}
	return usages, nil
}

// An Outcome is the result of one limit of [Limiter.TakeEach]: what
// [Limiter.Take] returns for it.
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

// TakeEach decides each limit as a call of its own, in order, and in one request
// to Redis for every 128. A rule's Wait has no effect. The outcomes are in the
// order of the limits.
func (l *Limiter) TakeEach(ctx context.Context, limits ...Limit) []Outcome {
	outcomes := make([]Outcome, len(limits))
	if !l.Enabled() || isExempt(ctx) {
		for i := range outcomes {
			outcomes[i].Allowed = true
		}
		return outcomes
	}
	defer l.refusedEach(ctx, outcomes)
	paid := make([]paidCap, len(limits))
	arrived := clock.Now()
	var open []*decide.Call
	var asked []int // the limit of each
	for i := range limits {
		req, out := newRequest(), &outcomes[i]
		defer req.free()
		if out.Err = req.fill(ctx, l, limits[i:i+1]); out.Err != nil {
			continue
		}
		if l.cap != nil && !decide.Unsatisfiable(req.Charges) {
			if out.Err = l.admitted(ctx, &paid[i], &out.Decision); out.Err != nil {
				continue
			}
		}
		if len(req.Charges) == 0 {
			out.Allowed = true
			continue
		}
		if req.Begin(ctx, time.Time{}, arrived); l.engine.Known(ctx, &req.Call.Call) {
			out.Err = l.finish(ctx, &req.Call.Call, limits[i:i+1], nil, &out.Decision)
		} else {
			open, asked = append(open, &req.Call.Call), append(asked, i)
		}
	}
	for k, err := range l.engine.AskEach(ctx, open) {
		i := asked[k]
		outcomes[i].Err = l.finish(ctx, open[k], limits[i:i+1], err, &outcomes[i].Decision)
	}
	for i := range outcomes {
		if outcomes[i].Err != nil && l.cap != nil {
			l.cap.giveBack(&paid[i])
		}
	}
	return outcomes
}

// Reset forgets everything about the key of one limit, in the store and in
// this process: its next call finds the limit whole.
func (l *Limiter) Reset(ctx context.Context, limit Limit) error {
	if err := limit.rule.checkPrefix(); err != nil {
		return err
	}
	if err := limit.key.invalid(); err != nil {
		return err
	}
	rule, _, _ := l.overridden(&limit)
	p := l.plan(rule, rule.Max, nil)
	var charges [1]terms.Charge
	p.Charge(&charges[0], p.AppendKey(nil, limit.key.bytes()), 1)
	_ = l.local.Reset(ctx, charges[:]) // never fails
	if l.store == nil {
		return decide.ErrNoStore
	}
	key := charges[0].Key
	defer l.permits.Wake(key)
	if leases := l.engine.Leases; leases != nil {
		leases.Drop(key)
		defer leases.Drop(key) // what was charged meanwhile may be forgotten
	}
	return private.Hide(l.store.Reset(ctx, charges[:]))
}

// RedisKey returns the key in Redis under which a limit counts by the overrides in
// force, for tools and logs. It is empty for a rule that has neither a Prefix nor a
// Name.
func (l *Limiter) RedisKey(limit Limit) string {
	if limit.rule.checkPrefix() != nil {
		return ""
	}
	rule, _, _ := l.overridden(&limit)
	p := l.plan(rule, rule.Max, nil)
	return string(p.AppendKey(nil, limit.key.bytes()))
}

// Hold denies all calls on the key of a limit for d, from now on by the clock of the store
// and on every replica: a peer that the calls go to has asked for that. It takes one trip.
// A key that is blocked for longer already stays so. The limit's rule has a [Rule.Hold], or
// it is [ErrInvalidLimit]. Package rateclient holds for HTTP.
//
// Calls that a hold denies have the time until it ends as their RetryAfter, and those that
// may wait for so long do. The hold does not change what is counted. [Limiter.Release]
// ends it, and [Limiter.Reset] does too.
func (l *Limiter) Hold(ctx context.Context, limit Limit, d time.Duration) error {
	if d < time.Microsecond || d > MaxWindow {
		return fmt.Errorf("%w: a hold for %v is not between 1µs and 366 days", ErrInvalidLimit, d)
	}
	return l.hold(ctx, limit, d)
}

// longestHold bounds a [Limiter.HoldOff] of a rule with a shorter window.
const longestHold = time.Hour

// HoldOff is [Limiter.Hold] for the results of a call, which say for how long nobody is to
// make another one: what hold= in a directive evaluates to. It does nothing at 0 or less.
// More than an hour counts as an hour, or as the rule's Window if that is longer. The hold
// does not end with ctx, and takes one trip. It is logged, a line a second for each rule,
// and what keeps the store from it reaches the observers, too.
func (l *Limiter) HoldOff(ctx context.Context, limit Limit, d time.Duration) {
	if d <= 0 || limit.rule == nil {
		return
	}
	held := min(max(d, time.Microsecond), max(longestHold, limit.rule.Window))
	ctx, cancel := l.detached(ctx)
	defer cancel()
	l.events.heldOff(ctx, limit.rule, held, held < d, l.Hold(ctx, limit, held))
}

// PeerRefused tells the observers that the peer of a rule has refused a call that went
// out. It holds nothing back. Package rateclient calls it.
func (l *Limiter) PeerRefused(ctx context.Context, rule *Rule) {
	for _, o := range l.events.observers {
		notifyWith(l.events, ctx, o.PeerRefused, PeerRefusedEvent{rule.Name})
	}
}

// Release ends a hold, or another block, of the key of a limit. Another replica may deny
// calls for a moment more, see [WithDenialMemory].
func (l *Limiter) Release(ctx context.Context, limit Limit) error { return l.hold(ctx, limit, 0) }

func (l *Limiter) hold(ctx context.Context, limit Limit, d time.Duration) error {
	if err := limit.key.invalid(); err != nil {
		return err
	}
	rule, most, _ := l.overridden(&limit)
	p, err := l.planFor(&limit, rule, max(1, most)) // at 0 nobody is admitted anyway
	if err != nil {
		return err
	}
	if !rule.Hold {
		return fmt.Errorf("%w: rule %q has no Hold", ErrInvalidLimit, rule.Name)
	}
	var charges [1]terms.Charge
	p.Charge(&charges[0], p.AppendKey(nil, limit.key.bytes()), 0)
	charges[0].At = d.Microseconds()
	local := charges
	_ = l.local.Hold(ctx, local[:]) // for calls that the store will not decide
	if err = decide.ErrNoStore; l.store != nil {
		err = private.Hide(errors.Join(l.store.Hold(ctx, charges[:]), charges[0].Err))
	}
	for _, o := range l.events.observers {
		notifyWith(l.events, ctx, o.Hold, HoldEvent{rule.Name, d, err})
	}
	return err
}
