package rateclient

import (
	"context"
	"time"
)

// An Observer is a set of functions that a [Transport] calls when something happens. A
// nil function costs nothing. They are called from many goroutines, on the path of the
// request and with its context, so they must be quick. All texts of events come from the
// program, so they fit the labels of a metric.
//
// A [runtime.Observer] of the limiter receives the decisions of the limits.
type Observer struct {
	// Held is called when an answer holds calls back.
	Held func(context.Context, HeldEvent)
	// Waited is called when a request has waited for its turn.
	Waited func(context.Context, WaitedEvent)
}

// WithObserver sets the observer, which must not be changed any more.
func WithObserver(o *Observer) Option { return func(t *Transport) { t.observer = o } }

// A HeldEvent is an answer that holds calls back.
type HeldEvent struct {
	// Pattern is the peer's, and Rule the name of its first limit's rule.
	Pattern, Rule string
	// Status is that of the answer; 0 where it has none of HTTP.
	Status int
	// Refused reports that the peer has refused the request. It has served it otherwise,
	// and says that nothing is left.
	Refused bool
	// HoldOff is for how long calls are held back.
	HoldOff time.Duration
	// Bounded reports that the peer has wanted more than MaxHold.
	Bounded bool
	// Err says why the store does not hold calls back. This process does.
	Err error
}

// A WaitedEvent is the end of a request's waiting.
type WaitedEvent struct {
	// Pattern is the peer's.
	Pattern string
	// Waited is how long the request has waited.
	Waited time.Duration
	// Admitted reports that the request was sent then.
	Admitted bool
}

func (o *Observer) held(ctx context.Context, ev HeldEvent) {
	if o != nil && o.Held != nil {
		o.Held(ctx, ev)
	}
}

func (o *Observer) waited(ctx context.Context, ev WaitedEvent) {
	if o != nil && o.Waited != nil {
		o.Waited(ctx, ev)
	}
}
