package runtime

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/rategen/rategen/runtime/internal/recording"
	"github.com/rategen/rategen/runtime/observe"
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
	l.events.record(ctx, err, returned)
	return returned
}

// record tells the recorders of a context of a refusal, and of the error that the caller received.
func (e *events) record(ctx context.Context, err, returned error) {
	recorders := recording.Functions[*recording.Refusals[observe.Refusal]](ctx)
	if recorders == nil {
		return
	}
	call := newRefusedCall(e, err)
	for r := recorders; r != nil; r = r.Outer {
		r.Func.Standing.Add(&call.Refused)
		notify(e, "recorder", r.Func.Record, observe.Refusal{Err: err, Returned: returned, RefusedCall: call})
	}
}

// recordBackend records that a backend has refused a call with an error.
func recordBackend(ctx context.Context, r *Rule, after time.Duration, returned error) {
	noEvents.record(ctx, &LimitedError{Rule: r.Name, RetryAfter: after, rule: r}, returned)
}

// form returns the form that the application has for a refusal. It is never nil.
func (l *Limiter) form(ctx context.Context, err error) (formed error) {
	formed = err
	defer l.events.contain("refused")
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
