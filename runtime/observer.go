package runtime

import "github.com/rategen/rategen/runtime/observe"

// WithObserver adds an observer, which must not be changed any more. Several observers are
// called in the order of the options. A nil observer adds nothing.
//
// Events of a store reach every limiter on it until [Limiter.Close]. An observer that several
// of these limiters share is called once for each event.
func WithObserver(o *observe.Observer) Option { return func(l *Limiter) { l.events.observe(o) } }
