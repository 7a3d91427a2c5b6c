package runtime

import (
	"context"
	"errors"
	"hash/maphash"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/decide"
	"github.com/rategen/rategen/runtime/internal/recording"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// undecidedStands is for how long a refusal counts that says no time to come back.
const undecidedStands = time.Minute

// A refusedCall implements [observe.RefusedCall].
type refusedCall struct {
	recording.Refused
	events *events
	err    error
}

// newRefusedCall returns the refusal that an error of a call is. It counts for as long as its client
// is told to wait, in whole seconds.
func newRefusedCall(e *events, err error) *refusedCall {
	c := &refusedCall{events: e, err: err}
	c.Until = Never
	switch err := err.(type) {
	case *LimitedError:
		c.Caller = err.caller
		if err.RetryAfter < rule.MaxWindow {
			c.Until = clock.Now() + (err.RetryAfter + time.Second - 1).Truncate(time.Second)
		}
	case decide.Unavailable:
		c.Caller, c.Until = err.Caller, clock.Now()+undecidedStands
	}
	return c
}

func (c *refusedCall) Hidden(ctx context.Context, route string) {
	if name, ok := c.refused(); ok {
		c.events.log.Hidden(name, route)
		c.notify(ctx, observe.HiddenEvent{Rule: name})
	}
}

func (c *refusedCall) Served(ctx context.Context) {
	if name, ok := c.refused(); ok {
		c.notify(ctx, observe.HiddenEvent{Rule: name, Served: true})
	}
}

func (c *refusedCall) Overruled(route string) {
	if name, ok := c.refused(); ok {
		c.events.log.Overruled(name, route)
	}
}

// refused returns the rule that has refused the call.
func (c *refusedCall) refused() (name string, ok bool) {
	var limited *LimitedError
	if !errors.As(c.err, &limited) {
		return "", false
	}
	return limited.Rule, true
}

func (c *refusedCall) notify(ctx context.Context, ev observe.HiddenEvent) {
	for _, o := range c.events.observers {
		notifyWith(c.events, ctx, o.Hidden, ev)
	}
}

// liftRefusals lifts the refusals of the callers whose calls were admitted.
func liftRefusals(s *recording.Standing, charges []decide.Charge) {
	if !s.Any() {
		return
	}
	for i := range charges {
		s.Lift(callerOf(charges[i].Key))
	}
}

var callerSeed = maphash.MakeSeed()

// callerOf returns a number for the key of a rule, which is above 0 and tells nothing else. Of two keys
// it is the same once in 2^64 times.
func callerOf(key []byte) uint64 { return max(1, maphash.Bytes(callerSeed, key)) }
