package runtime

import (
	"context"
	"time"
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
	since := instant()
	l.events.wait(ctx, WaitEvent{Rule: rule.Name, Waiting: true})
	return func(admitted bool) {
		l.events.wait(ctx, WaitEvent{Rule: rule.Name, Waited: instant() - since, Admitted: admitted})
	}
}

// A waiting is what is known of a call that waits for its turn.
type waiting struct {
	since time.Duration // an instant; 0: it has not waited
	rule  string
}

// waits reports that a request begins to wait, unless it has waited before.
func (l *Limiter) waits(ctx context.Context, req *request) {
	if req.waiting.since == 0 {
		req.waiting = waiting{max(instant(), 1), req.keptBy()}
		l.events.wait(ctx, WaitEvent{Rule: req.waiting.rule, Waiting: true})
	}
}

// waited reports that a request waits no longer, if it has waited.
func (l *Limiter) waited(ctx context.Context, req *request, err error) {
	if w := req.waiting; w.since != 0 {
		req.waiting = waiting{}
		l.events.wait(ctx, WaitEvent{Rule: w.rule, Waited: instant() - w.since, Admitted: err == nil})
	}
}

// keptBy returns the name of the rule for which a request has to wait longest. It is in
// a line for one.
func (r *request) keptBy() (rule string) {
	longest := time.Duration(-1)
	for i := range r.Charges {
		c, t := &r.Charges[i], &r.Tries[i]
		if r.Turn.For(c.Key, c.Own) {
			return c.Plan.Name
		}
		wait := t.Delay
		if !t.Allowed {
			wait = t.RetryAfter
		}
		if !t.Shadow && wait > longest {
			rule, longest = c.Plan.Name, wait
		}
	}
	return rule
}

func (e *events) wait(ctx context.Context, ev WaitEvent) {
	for _, o := range e.observers {
		notifyWith(e, ctx, o.Wait, ev)
	}
}
