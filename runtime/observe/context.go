package observe

import (
	"context"

	"github.com/rategen/rategen/runtime/internal/recording"
)

// WithRecorder returns a context under which record receives every limit of every decided call,
// not only the tightest one. Middleware uses it to learn which limits a request met in the
// wrappers below it.
//
// A limiter calls record once for each limit before the call returns, with the event that
// [Observer.Decision] receives. If goroutines share the context, record must be safe for
// concurrent use. A recorder that the context already has goes on to receive events. A panic in
// record is contained and reported. A nil record adds nothing.
func WithRecorder(ctx context.Context, record func(DecisionEvent)) context.Context {
	if record == nil {
		return ctx
	}
	return recording.With(ctx, record)
}

// A Refusal is a call that a limiter did not admit.
type Refusal struct {
	// Err is the limiter's own error.
	Err error
	// Returned is the error that the caller received: Err, or what the function of
	// runtime.WithRefusalError made of it.
	Returned error
	RefusedCall
}

// A RefusedCall is what middleware asks about a refusal, and tells of it.
type RefusedCall interface {
	// Stands reports whether the refusal counts for the answer to the request that it is of: until
	// its rule has admitted the same key under the recorder's context, or the time to come back is
	// over.
	Stands() bool
	// Hidden reports that the client of the refused call was told of something else, such as a
	// failure of the server: a WARN once for each rule and route, and [Observer.Hidden]. The route
	// is how the program declares what was called, such as "POST /orders/{id}", and nothing that
	// the client has sent. Only refusals are reported: other refusals are failures.
	Hidden(ctx context.Context, route string)
	// Served reports that the client was told of a success, by [Observer.Hidden] alone.
	Served(ctx context.Context)
	// Overruled reports that the client was told of the refusal in place of what the program had
	// answered: an INFO once for each rule and route.
	Overruled(route string)
}

// WithRefusalRecorder returns a context under which record receives every refused call, with
// the limiter's own error. Middleware uses it to answer a request by the true reason, whatever
// the program has made of the error. All else is as with [WithRecorder].
func WithRefusalRecorder(ctx context.Context, record func(Refusal)) context.Context {
	if record == nil {
		return ctx
	}
	return recording.WithRefusals(ctx, record)
}
