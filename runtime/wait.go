package runtime

import (
	"context"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/turn"
)

// A WaitEvent is a call that begins to wait for its turn, see [Rule.Wait] and
// [Limiter.Waits], or whose waiting is over. The two events of a call have the same Rule.
type WaitEvent struct {
	// Rule is the name of the rule that, when the call begins to wait, keeps it for
	// longest.
	Rule string
	// Waiting is true when the call begins to wait, and false when that is over.
	Waiting bool
	// Waited is how long it waited in all, trips to the store included. Until the wait
	// is over it is 0.
	Waited time.Duration
	// Admitted reports that the call then went on. Otherwise it was denied, not decided,
	// or its context ended.
	Admitted bool
}

// Waits tells the observers that a call waits for its turn, by a rule, in a line that is
// not the limiter's. over is called once, when that is over. Package rateclient has such
// lines.
func (l *Limiter) Waits(ctx context.Context, rule *Rule) (over func(admitted bool)) {
	since := clock.Now()
	l.events.Waits(ctx, turn.Event{Rule: rule.Name, Waiting: true})
	return func(admitted bool) {
		l.events.Waits(ctx, turn.Event{Rule: rule.Name, Waited: clock.Now() - since, Admitted: admitted})
	}
}

// Waits implements [turn.Told].
func (e *events) Waits(ctx context.Context, ev turn.Event) {
	for _, o := range e.observers {
		notifyWith(e, ctx, o.Wait, WaitEvent(ev))
	}
}

// again makes the charges of a request that has waited anew, by what holds now.
func (l *Limiter) again(ctx context.Context, req *request, limits []Limit) error {
	req.Again = true
	if !l.Enabled() {
		req.Clear()
		return nil
	}
	return req.fill(ctx, l, limits)
}

// A standing is what holds for limits at present.
type standing struct {
	*Limiter
	limits []Limit
}

// standing returns what holds for a copy of limits, which are on their caller's stack.
func (l *Limiter) standing(limits []Limit) turn.Now { return &standing{l, slices.Clone(limits)} }

// Overrides implements [turn.Now].
func (s *standing) Overrides() turn.Overrides { return s.overrides.Load() }

// Plan implements [turn.Now].
func (s *standing) Plan(i int) (*plan.Plan, bool, error) { return s.planOf(&s.limits[i]) }
