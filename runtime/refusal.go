package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/decide"
	"github.com/rategen/rategen/runtime/internal/recording"
	"github.com/rategen/rategen/runtime/internal/report"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// WithRefusalError gives every refusal of the limiter the form that the application has for its
// errors: [Limiter.Take] and [Limiter.TakeEach] return what form makes of their error. That is
// a [*LimitedError], [ErrUnavailable], [ErrInvalidKey] or [ErrInvalidLimit], and never the
// error of a context that has ended.
//
// If form returns nil or panics the call is refused with the limiter's own error, which
// middleware learns of by [observe.WithRefusalRecorder]. form is called from many goroutines.
func WithRefusalError(form func(ctx context.Context, err error) error) Option {
	return func(l *Limiter) { l.onRefusal = form }
}

// refusalError returns what the caller of a call that was not admitted receives.
func (l *Limiter) refusalError(ctx context.Context, err error) error {
	if l.onRefusal == nil && !recording.Anyone.Load() || !isRefusal(ctx, err) {
		return err
	}
	returned := err
	if l.onRefusal != nil {
		returned = l.form(ctx, err)
	}
	record(ctx, l.events, err, returned)
	return returned
}

// undecidedStands is for how long a refusal counts that says no time to come back.
const undecidedStands = time.Minute

// record tells the recorders of a context of a refusal, and of the error that the caller received. The
// refusal counts for as long as its client is told to wait, in whole seconds.
func record(ctx context.Context, e *report.Events, err, returned error) {
	recorders := recording.Functions[*recording.Refusals[observe.Refusal]](ctx)
	if recorders == nil {
		return
	}
	name, caller, until := "", uint64(0), Never
	limited, is := err.(*LimitedError)
	if is {
		name, caller = limited.Rule, limited.caller
		if limited.RetryAfter < rule.MaxWindow {
			until = clock.Now() + (limited.RetryAfter + time.Second - 1).Truncate(time.Second)
		}
	} else if undecided, is := err.(decide.Unavailable); is {
		caller, until = undecided.Caller, clock.Now()+undecidedStands
	}
	call := e.Refused(name, is, caller, until)
	for r := recorders; r != nil; r = r.Outer {
		r.Func.Standing.Add(&call.Refused)
		report.Notify(e, "recorder", r.Func.Record, observe.Refusal{Err: err, Returned: returned, RefusedCall: call})
	}
}

// recordBackend records that a backend has refused a call with an error.
func recordBackend(ctx context.Context, r *Rule, after time.Duration, returned error) {
	record(ctx, report.NoEvents, &LimitedError{Rule: r.Name, RetryAfter: after, rule: r}, returned)
}

// form returns the form that the application has for a refusal. It is never nil.
func (l *Limiter) form(ctx context.Context, err error) (formed error) {
	formed = err
	defer l.events.Contain("refused")
	return cmp.Or(l.onRefusal(ctx, err), err)
}

// isRefusal reports whether an error of a call is the limiter's, and not that of a context that
// has ended.
func isRefusal(ctx context.Context, err error) bool {
	for _, own := range [...]error{ErrLimited, ErrUnavailable, ErrInvalidKey, ErrInvalidLimit} {
		if errors.Is(err, own) {
			return true
		}
	}
	return ctx.Err() == nil && err != context.DeadlineExceeded // which a context may be about to say
}

// maxKeepRefusals bounds what refusals take in Redis.
const maxKeepRefusals = 7 * 24 * time.Hour

// minSecret is how many bytes a secret has at least: others may try short ones on what they read.
const minSecret = 16

// WithRefusals sets for how long Redis keeps whom the limiter has refused in each minute: the 100 callers
// that were refused most, and the number of the others; with 0 no key is told, neither of these nor of those that
// Redis is asked about most. The default is 24 hours. Keys are there as they are in Redis anyway or, with
// a secret, as keyed hashes: who knows the secret finds a caller, and nobody reads one. All limiters
// of a namespace need the same. It panics if kept is below 0 or above 7 days, or not of whole minutes,
// and if a secret that is not nil has less than 16 bytes: it may come from a variable that is not set.
func WithRefusals(kept time.Duration, secret []byte) Option {
	if kept < 0 || kept > maxKeepRefusals || kept%time.Minute != 0 {
		panic(fmt.Sprintf("runtime: WithRefusals(%v): say whole minutes, %v at most, or 0 to keep none", kept,
			maxKeepRefusals))
	}
	if secret != nil && len(secret) < minSecret {
		panic(fmt.Sprintf("runtime: WithRefusals: a secret has %d bytes at least, and this one %d: nil hides no key", minSecret, len(secret)))
	}
	return func(l *Limiter) {
		l.reporter.Kept, l.reporter.Secret = &kept, slices.Clone(secret)
	}
}

// WithoutReports has a limiter tell Redis nothing of itself: neither which rules and overrides are in force,
// nor whom it refuses. Then ratectl does not know whether it follows the overrides that are changed.
func WithoutReports() Option { return func(l *Limiter) { l.reporter.Disabled = true } }
