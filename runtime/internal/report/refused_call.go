package report

import (
	"context"
	"time"

	"github.com/rategen/rategen/runtime/internal/recording"
	"github.com/rategen/rategen/runtime/observe"
)

// A RefusedCall implements [observe.RefusedCall].
type RefusedCall struct {
	recording.Refused
	events  *Events
	rule    string // that has refused the call
	limited bool   // there is one
}

// Refused returns the refusal of a caller's call, which counts until an instant. Rule is the name of the
// one that has refused it, if it was limited.
func (e *Events) Refused(rule string, limited bool, caller uint64, until time.Duration) *RefusedCall {
	c := &RefusedCall{events: e, rule: rule, limited: limited}
	c.Caller, c.Until = caller, until
	return c
}

func (c *RefusedCall) Hidden(ctx context.Context, route string) {
	if c.limited {
		c.events.Log.Hidden(c.rule, route)
		c.notify(ctx, observe.HiddenEvent{Rule: c.rule})
	}
}

func (c *RefusedCall) Served(ctx context.Context) {
	if c.limited {
		c.notify(ctx, observe.HiddenEvent{Rule: c.rule, Served: true})
	}
}

func (c *RefusedCall) Overruled(route string) {
	if c.limited {
		c.events.Log.Overruled(c.rule, route)
	}
}

func (c *RefusedCall) notify(ctx context.Context, ev observe.HiddenEvent) {
	for _, o := range c.events.Observers {
		NotifyWith(c.events, ctx, o.Hidden, ev)
	}
}
