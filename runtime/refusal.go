package runtime

import (
	"cmp"
	"context"
	"errors"
)

// WithRefusalError gives every refusal of the limiter the form that the application has for its
// errors: [Limiter.Take] and [Limiter.TakeEach] return what form makes of their error. That is
// a [*LimitedError], [ErrUnavailable], [ErrInvalidKey] or [ErrInvalidLimit], and never the
// error of a context that has ended.
//
// If form returns nil or panics the call is refused with the limiter's own error, which
// middleware learns of by [WithRefusalRecorder]. form is called from many goroutines.
func WithRefusalError(form func(ctx context.Context, err error) error) Option {
	return func(l *Limiter) { l.onRefusal = form }
}

// A Refusal is a call that the limiter did not admit.
type Refusal struct {
	// Err is the limiter's own error.
	Err error
	// Returned is the error that the caller received: Err, or what the function of
	// [WithRefusalError] made of it.
	Returned error

	events   *events // of the limiter
	standing *standingRefusal
}

// Stands reports whether the refusal counts for the answer to the request that it is of: until its
// rule has admitted the same key under the recorder's context, or the time to come back is over.
func (r Refusal) Stands() bool { return r.standing == nil || r.standing.stands() }

// Hidden reports that the client of the refused call was told of something else, such as a
// failure of the server: a WARN once for each rule and route, and [Observer.Hidden]. Middleware
// calls it. The route is how the program declares what was called, such as "POST /orders/{id}",
// and nothing that the client has sent. Only denials are reported: other refusals are failures.
func (r Refusal) Hidden(ctx context.Context, route string) {
	if rule, ok := r.denied(); ok {
		r.events.log.Hidden(rule, route)
		r.notify(ctx, HiddenEvent{Rule: rule})
	}
}

// Served reports that the client of the refused call was told of a success, by
// [Observer.Hidden] alone. All else is as with [Refusal.Hidden].
func (r Refusal) Served(ctx context.Context) {
	if rule, ok := r.denied(); ok {
		r.notify(ctx, HiddenEvent{Rule: rule, Served: true})
	}
}

// Overruled reports that the client was told of the refusal in place of what the program had
// answered: an INFO once for each rule and route. All else is as with [Refusal.Hidden].
func (r Refusal) Overruled(route string) {
	if rule, ok := r.denied(); ok {
		r.events.log.Overruled(rule, route)
	}
}

// denied returns the rule that has denied the call.
func (r Refusal) denied() (rule string, ok bool) {
	var limited *LimitedError
	if r.events == nil || !errors.As(r.Err, &limited) {
		return "", false
	}
	return limited.Rule, true
}

func (r Refusal) notify(ctx context.Context, ev HiddenEvent) {
	for _, o := range r.events.observers {
		notifyWith(r.events, ctx, o.Hidden, ev)
	}
}

// WithRefusalRecorder returns a context under which record receives every refused call, with
// the limiter's own error. Middleware uses it to answer a request by the true reason, whatever
// the program has made of the error. All else is as with [WithRecorder].
func WithRefusalRecorder(ctx context.Context, record func(Refusal)) context.Context {
	if record == nil {
		return ctx
	}
	return withRecorder(ctx, &recorder{refused: record})
}

// refusalError returns what the caller of a call that was not admitted receives.
func (l *Limiter) refusalError(ctx context.Context, err error) error {
	if l.onRefusal == nil && !anyRecorder.Load() || !isRefusal(ctx, err) {
		return err
	}
	returned := err
	if l.onRefusal != nil {
		returned = l.form(ctx, err)
	}
	refusal := Refusal{Err: err, Returned: returned, events: l.events}
	for r := recordersOf(ctx); r != nil; r = r.parent {
		if r.refused != nil {
			r.standing.refused(&refusal)
			notify(l.events, "recorder", r.refused, refusal)
		}
	}
	return returned
}

// form returns the form that the application has for a refusal. It is never nil.
func (l *Limiter) form(ctx context.Context, err error) (formed error) {
	formed = err
	defer l.events.contain("denied")
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
