package runtime

import (
	"context"
	"fmt"
	"time"

	"github.com/rategen/rategen/internal/peerstate"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/decide"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

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

func (l lent) HoldOff(ctx context.Context, limit Limit, d time.Duration) {
	if d <= 0 || limit.Rule == nil {
		return
	}
	held := min(max(d, time.Microsecond), max(time.Hour, plan.NumbersOf(limit.Rule).Window()), rule.MaxWindow)
	ctx, cancel := l.settleContext(ctx)
	defer cancel()
	l.events.reportHold(ctx, limit.Rule, held, held < d, l.Hold(ctx, limit, held))
}

func (l lent) PeerRefused(ctx context.Context, rule *Rule) {
	for _, o := range l.events.observers {
		notifyWith(l.events, ctx, o.PeerRefused, observe.PeerRefusedEvent{Rule: rule.Name})
	}
}

func (l lent) Peer(ctx context.Context, limit Limit, of *peerstate.Limit, said peerstate.Said) peerstate.State {
	p, err := l.plans.ForHold(&limit)
	if err != nil || keyError(&limit) != nil {
		return peerstate.State{} // the call has the error
	}
	var array [terms.ShortKey]byte
	return l.peers.Say(ctx, p.AppendKey(array[:0], rule.PartsOf(&limit).Bytes()), of, said)
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
	return rule.PartsOf(l).Err()
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
	key := p.AppendKey(nil, rule.PartsOf(&limit).Bytes())
	err = l.engine.Hold(ctx, p, key, d)
	if d == 0 && err == nil {
		err = l.peers.Forget(ctx, key)
	}
	for _, o := range l.events.observers {
		notifyWith(l.events, ctx, o.Hold, observe.HoldEvent{Rule: p.Name, For: d, Err: err})
	}
	return err
}

func (l lent) Waits(ctx context.Context, rule *Rule) (over func(admitted bool)) {
	since := clock.Now()
	l.events.waits(ctx, decide.WaitEvent{Rule: rule.Name, Waiting: true})
	return func(admitted bool) {
		l.events.waits(ctx, decide.WaitEvent{Rule: rule.Name, Waited: clock.Now() - since, Admitted: admitted})
	}
}

func (l lent) TooLate(ctx context.Context, limit Limit, waited, after time.Duration) error {
	p, on, err := l.plans.Plan(&limit)
	if err != nil {
		return l.refusalError(ctx, err)
	}
	if !on { // just now: what is in force had it wait
		return l.refusalError(ctx, &LimitedError{Rule: limit.Rule.Name, Limit: limit.Max, RetryAfter: after})
	}
	charges := []decide.Charge{{Plan: p, Key: p.AppendKey(nil, rule.PartsOf(&limit).Bytes()), Cost: limit.Cost,
		Max: limit.Max, Limits: 1}}
	tries := make([]terms.Charge, 1)
	p.Charge(&tries[0], charges[0].Key, limit.Cost)
	tries[0].Source, tries[0].RetryAfter = rule.SourceRecalled, after
	return l.refusalError(ctx, l.answer(ctx, charges, tries, clock.Now(), waited, new(Decision)))
}
