package decide

import (
	"cmp"
	"context"
	"errors"

	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rule"
)

// ErrLimited is runtime.ErrLimited, which says what it means.
var ErrLimited = errors.New("rate limit exceeded")

// ErrUnavailable is runtime.ErrUnavailable, which says what it means.
var ErrUnavailable = errors.New("rate limit store unavailable")

// An Unavailable error is the ErrUnavailable of a call that was not decided and has a rule that
// fails closed.
type Unavailable struct {
	Cause error
	// Caller is the call's, for package runtime, or 0.
	Caller uint64
}

func (u Unavailable) Error() string        { return ErrUnavailable.Error() }
func (u Unavailable) Is(target error) bool { return target == ErrUnavailable }
func (u Unavailable) Unwrap() error        { return u.Cause }

func (u Unavailable) StatusCode() int { return 503 }

// ErrClosed is runtime.ErrClosed, which says what it means.
var ErrClosed error = closedError{}

type closedError struct{}

func (closedError) Error() string        { return "rate limiter closed while the call waited" }
func (closedError) Is(target error) bool { return target == ErrUnavailable }

func (closedError) StatusCode() int { return 503 }

// fail applies the failure policies to the charges that were not decided. Cause is why the
// call was not decided. If it is nil only charges in shadow mode were not; they are admitted.
func (e *Engine) fail(ctx context.Context, c *Call, cause error) error {
	if ctx.Err() != nil { // no failure of the store
		source := rule.SourceFailure
		if cause != nil {
			source = rule.SourceNone
		}
		for i := range c.Tries {
			c.admitUndecided(i, source)
		}
		return nil
	}
	refused, alone := isRefused(c.Tries), false
	var closed error
	for i := range c.Tries {
		t, p := &c.Tries[i], c.Charges[i].Plan
		if t.Err == nil {
			continue
		}
		policy, err := p.Fail, private.Hide(t.Err)
		if cause == nil {
			policy = rule.FailOpen
		}
		c.admitUndecided(i, rule.SourceFailure)
		if !refused || !t.Shadow {
			e.failed(ctx, p, policy, err)
		}
		if policy == rule.FailClosed {
			closed = Unavailable{Cause: err}
		} else if policy == rule.FailLocal {
			t.Source, alone = rule.SourceLocal, true
		} else if cause == nil && concernsOneKey(err) {
			e.shadowPauses.begin(p.Declared, err)
		}
	}
	if closed == nil && alone {
		closed = e.decideAlone(ctx, c)
	}
	for i := range c.Tries {
		if t := &c.Tries[i]; closed != nil && t.Source == rule.SourceLocal {
			t.Source = rule.SourceFailure
		}
	}
	return closed
}

// admitUndecided makes a charge that was not decided one that has room, by who has said so.
func (c *Call) admitUndecided(i int, by rule.Source) {
	if t := &c.Tries[i]; t.Err != nil {
		t.Result, t.Err, t.Source = terms.Result{Allowed: true, Remaining: c.Charges[i].Plan.Capacity}, nil, by
	}
}

// failed reports that a policy decides a limit, and why the store does not.
func (e *Engine) failed(ctx context.Context, p *plan.Plan, policy rule.FailurePolicy, err error) {
	e.Events.Failure(ctx, p, policy, ClassOf(err), err)
}

func isRefused(tries []terms.Charge) bool {
	for i := range tries {
		if t := &tries[i]; t.Err == nil && !t.Allowed && !t.Shadow {
			return true
		}
	}
	return false
}

// concernsOneKey reports whether an error may be the fault of one limit of many.
func concernsOneKey(err error) bool {
	class := ClassOf(err)
	return class == ClassAuth || class == ClassTryAgain
}

// decideAlone decides charges by this process's share of their limits. What is charged so is
// settled in this process, so that no unit of a lease may be settled with it.
func (e *Engine) decideAlone(ctx context.Context, c *Call) error {
	var asked []terms.Charge
	for i := range c.Tries {
		if t := &c.Tries[i]; t.Source == rule.SourceLocal {
			share := c.Charges[i].Plan.Share
			var one terms.Charge
			share.Charge(&one, t.Key, min(t.Cost, share.Capacity))
			one.Wait, one.Tenancy, one.Deferred = t.Wait, t.Tenancy, t.Deferred
			if share.Queues() {
				one.More = t.Wait.Microseconds()
			}
			asked = append(asked, one)
		}
	}
	calls := []terms.Call{{Charges: asked}}
	if err := cmp.Or(e.Alone.Take(ctx, calls), calls[0].Err); err != nil {
		return Unavailable{Cause: err}
	}
	admitted := terms.Admitted(calls[0].Charges)
	for i := range c.Tries {
		t := &c.Tries[i]
		if t.Source == rule.SourceLocal {
			t.Terms, t.Result, asked = asked[0].Terms, asked[0].Result, asked[1:]
		} else if t.Source == rule.SourceLease && admitted {
			t.At = 0
		}
	}
	return nil
}
