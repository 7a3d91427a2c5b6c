package runtime

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

type exemptKey struct{}

// WithoutLimits returns a context whose calls no limit holds for, as if [WithEnabled]
// said so for them alone: they are not counted and not reported, and the cap of the
// process does not bound them. Middleware gives it to clients that a program knows, such
// as its own health checks.
func WithoutLimits(ctx context.Context) context.Context {
	exempting.Store(true)
	return context.WithValue(ctx, exemptKey{}, true)
}

// A recorder is a function that a context carries, see [WithRecorder] and
// [WithRefusalRecorder].
type recorder struct {
	record  func(DecisionEvent) // or nil
	refused func(Refusal)       // or nil
	outer   *recorder           // of the context that the functions were added to, or nil
}

type recorderKey struct{}

// recording is true once any context has a recorder. Programs that use none pay
// for no lookup in the context.
var recording atomic.Bool

// WithRecorder returns a context under which record receives every limit of
// every decided call, not only the tightest one. Middleware uses it to learn
// which limits a request met in the wrappers below it.
//
// [Limiter.Take] and [Limiter.TakeEach] call record once for each limit before
// they return, with the event that [Observer.Decision] receives. If goroutines
// share the context, record must be safe for concurrent use. A recorder that the
// context already has goes on to receive events. A panic in record is contained
// and reported. A nil record adds nothing.
func WithRecorder(ctx context.Context, record func(DecisionEvent)) context.Context {
	if record == nil {
		return ctx
	}
	return withRecorder(ctx, recorder{record: record})
}

func withRecorder(ctx context.Context, r recorder) context.Context {
	if !recording.Load() {
		recording.Store(true)
	}
	r.outer, _ = ctx.Value(recorderKey{}).(*recorder)
	return context.WithValue(ctx, recorderKey{}, &r)
}

// recordersOf returns the innermost recorder of a context, or nil.
func recordersOf(ctx context.Context) *recorder {
	if !recording.Load() {
		return nil
	}
	r, _ := ctx.Value(recorderKey{}).(*recorder)
	return r
}

// An exceeded holds the limits that a call has exceeded, and was not denied for.
type exceeded struct {
	outer *exceeded // of the call that this one is made by, or nil
	mu    sync.Mutex
	found []*LimitedError
}

type exceededKey struct{}

// WithExceeded returns a context in which [Limiter.Take] keeps the limits in [ModeSoft]
// mode that have no room for the call. Generated code takes limits under it, and passes
// it on to the method.
func WithExceeded(ctx context.Context) context.Context {
	outer, _ := ctx.Value(exceededKey{}).(*exceeded)
	return context.WithValue(ctx, exceededKey{}, &exceeded{outer: outer})
}

// Exceeded returns the limits in [ModeSoft] mode that had no room for a call with this
// context, and those of the calls that it is made by; nil if there are none. A method
// asks it whether to do less:
//
//	if over := runtime.Exceeded(ctx); over != nil {
//		return s.cached(id)
//	}
//
// A limit in [ModeShadow] mode is never among them.
func Exceeded(ctx context.Context) []*LimitedError {
	var all []*LimitedError
	e, _ := ctx.Value(exceededKey{}).(*exceeded)
	for ; e != nil; e = e.outer {
		e.mu.Lock()
		all = append(all, e.found...)
		e.mu.Unlock()
	}
	return all
}

// WithRefusalError gives every refusal of the limiter the form that the application
// has for its errors: [Limiter.Take] and [Limiter.TakeEach] return what form
// makes of their error. That is one of
//
//   - a [*LimitedError], which is [ErrLimited];
//   - [ErrUnavailable], [ErrInvalidKey] or [ErrInvalidLimit].
//
// The error of a context that has ended is none of the limiter's, and form does
// not receive it.
//
// If form returns nil the call is refused with the limiter's own error; so it is
// if form panics, and the panic is reported. form is called from many
// goroutines. Middleware learns of the limiter's own error by [WithRefusalRecorder].
func WithRefusalError(form func(ctx context.Context, err error) error) Option {
	return func(l *Limiter) { l.denied = form }
}

// A Refusal is a call that the limiter did not admit.
type Refusal struct {
	// Err is the limiter's own error.
	Err error
	// Returned is the error that the caller received: Err, or what the function
	// of [WithRefusalError] made of it.
	Returned error

	events *events // of the limiter
}

// Hidden reports that the client of the refused call was told of something else, such
// as a failure of the server: a WARN once for each rule and route, and
// [Observer.Hidden]. Middleware calls it. The route is how the program declares what
// was called, such as "POST /orders/{id}", and nothing that the client has sent. Only
// denials are reported: other refusals are failures.
func (r Refusal) Hidden(ctx context.Context, route string) {
	var limited *LimitedError
	if r.events != nil && errors.As(r.Err, &limited) {
		r.events.hidden(ctx, limited.Rule, route)
	}
}

// WithRefusalRecorder returns a context under which record receives every refused call,
// with the limiter's own error. Middleware uses it to answer a request by the true
// reason, whatever the program has made of the error.
// All else is as with [WithRecorder].
func WithRefusalRecorder(ctx context.Context, record func(Refusal)) context.Context {
	if record == nil {
		return ctx
	}
	return withRecorder(ctx, recorder{refused: record})
}

// refused returns what the caller of a call that was not admitted receives.
func (l *Limiter) refused(ctx context.Context, err error) error {
	if l.denied == nil && !recording.Load() || !isRefusal(ctx, err) {
		return err
	}
	returned := err
	if l.denied != nil {
		returned = l.form(ctx, err)
	}
	for r := recordersOf(ctx); r != nil; r = r.outer {
		if r.refused != nil {
			l.events.refused(r, Refusal{Err: err, Returned: returned, events: l.events})
		}
	}
	return returned
}

// refusedEach is refused for the outcomes of calls.
func (l *Limiter) refusedEach(ctx context.Context, outcomes []Outcome) {
	for i := range outcomes {
		if out := &outcomes[i]; out.Err != nil {
			out.Err = l.refused(ctx, out.Err)
		}
	}
}

// form returns the form that the application has for a refusal. It is never nil.
func (l *Limiter) form(ctx context.Context, err error) (formed error) {
	defer func() {
		if value := recover(); value != nil {
			l.events.panicked("denied", value)
		}
		if formed == nil {
			formed = err
		}
	}()
	return l.denied(ctx, err)
}

// isRefusal reports whether an error of a call is the limiter's, and not that of
// a context that has ended.
func isRefusal(ctx context.Context, err error) bool {
	for _, own := range [...]error{ErrLimited, ErrUnavailable, ErrInvalidKey, ErrInvalidLimit} {
		if errors.Is(err, own) {
			return true
		}
	}
	return ctx.Err() == nil && err != context.DeadlineExceeded // which a context may be about to say
}
