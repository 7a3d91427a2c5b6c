package runtime

import (
	"context"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/decide"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// pollPause is how often a call that waits looks whether what nobody tells it of has
// changed: the kill switch and the load.
const pollPause = 50 * time.Millisecond

// joinLine has a call that arrives wait behind those that wait for the same
// permits already. It returns at once, and false, if there are none, or if the call can
// never be admitted.
func (l *Limiter) joinLine(ctx context.Context, req *request) (waited bool, err error) {
	if decide.Unsatisfiable(req.Charges) {
		return false, nil
	}
	for i := range req.Charges {
		c, t := &req.Charges[i], &req.Tries[i]
		if t.Algorithm != terms.Permits || t.Shadow || t.Wait <= 0 {
			continue
		}
		if req.Turn = l.permits.Join(req.Turn, c.Key, c.Own, true); req.Turn != nil {
			return true, req.Turn.Await(ctx, t.Wait, func() { l.waits(ctx, req) })
		}
	}
	return false, nil
}

// awaitPermits waits until a call that was denied permits should ask the store again:
// at the latest when it may wait no longer, which is the time to be denied. The
// error is the context's.
func (l *Limiter) awaitPermits(ctx context.Context, req *request) error {
	denied, wait := -1, Never
	for i := range req.Tries {
		t := &req.Tries[i]
		if t.Allowed || t.Shadow {
			continue
		}
		wait = min(wait, t.Wait)
		if c := &req.Charges[i]; denied < 0 || req.Turn.For(c.Key, c.Own) {
			denied = i
		}
	}
	c := &req.Charges[denied]
	req.Turn = l.permits.Join(req.Turn, c.Key, c.Own, false)
	return req.Turn.Await(ctx, wait, func() { l.waits(ctx, req) })
}

// pause waits for as long as a denied request's pause says, or in the line for
// permits; and no longer than what holds for it.
func (l *Limiter) pause(ctx context.Context, req *request, limits []Limit, pause time.Duration) error {
	if pause == 0 {
		return l.awaitPermits(ctx, req)
	}
	req.leaveLine(true)
	for end := clock.Now() + pause; pause > 0; pause = end - clock.Now() {
		if changed, err := l.sleep(ctx, req, pause); err != nil || changed && !l.holds(req, limits) {
			return err
		}
	}
	return nil
}

// awaitTurn waits for the turn of an admitted request in queues. A queue that becomes
// faster meanwhile brings the turn nearer, and one that is gone has none.
func (l *Limiter) awaitTurn(ctx context.Context, req *request, limits []Limit) error {
	began := clock.Now()
	for {
		changed, err := l.sleep(ctx, req, req.Delay()-(clock.Now()-began))
		if err != nil || !changed {
			return err
		}
		passed := req.terms.end(clock.Now()) - began
		req.terms = l.overrides.Load()
		for i := range limits {
			if j := req.ChargeOf(i); j >= 0 && req.Tries[j].Delay > passed {
				l.hasten(&req.Tries[j], &limits[i], passed)
			}
		}
	}
}

// hasten moves the turn of a charge to the place that it has by what holds now. As many
// are before it as were when a part of its delay had passed.
func (l *Limiter) hasten(t *terms.Charge, limit *Limit, passed time.Duration) {
	p, on, err := l.planOf(limit)
	switch {
	case !on || !l.Enabled() || err == nil && p.Terms.Shadow:
		t.Delay = 0
	case err == nil && t.Source != terms.ByLocal && p.Max > 0:
		rate := float64(p.Max) / float64(p.Terms.Window) * float64(t.Window) / float64(t.Max)
		if rate > 1 {
			t.Delay = passed + time.Duration(float64(t.Delay-passed)/rate)
			t.Terms = p.Terms
		}
	}
}

// sleep waits for d, or until what holds for a request may have changed, which it then
// reports. It returns early with the context's error when that ends first.
func (l *Limiter) sleep(ctx context.Context, req *request, d time.Duration) (changed bool, err error) {
	if d <= 0 {
		return false, nil
	}
	if l.enabled != nil || req.Adapts() { // which tell nobody
		changed, d = d > pollPause, min(d, pollPause)
	}
	l.waits(ctx, req)
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return changed, nil
	case <-req.terms.ended():
		return true, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// renew makes the charges of a request that has waited anew, by what holds now.
func (l *Limiter) renew(ctx context.Context, req *request, limits []Limit) error {
	req.Again = true
	if !l.Enabled() {
		req.clear()
		return nil
	}
	return req.fill(ctx, l, limits)
}

// holds reports whether the terms of a request are still those that hold.
func (l *Limiter) holds(req *request, limits []Limit) bool {
	req.terms = l.overrides.Load()
	for i := range limits {
		if j := req.ChargeOf(i); j >= 0 {
			if p, on, err := l.planOf(&limits[i]); err != nil || !on || p.Key != req.Charges[j].Plan.Key {
				return false
			}
		}
	}
	return l.Enabled()
}

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
	l.events.wait(ctx, WaitEvent{Rule: rule.Name, Waiting: true})
	return func(admitted bool) {
		l.events.wait(ctx, WaitEvent{Rule: rule.Name, Waited: clock.Now() - since, Admitted: admitted})
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
		req.waiting = waiting{max(clock.Now(), 1), req.KeptBy()}
		l.events.wait(ctx, WaitEvent{Rule: req.waiting.rule, Waiting: true})
	}
}

// waited reports that a request waits no longer, if it has waited.
func (l *Limiter) waited(ctx context.Context, req *request, err error) {
	if w := req.waiting; w.since != 0 {
		req.waiting = waiting{}
		l.events.wait(ctx, WaitEvent{Rule: w.rule, Waited: clock.Now() - w.since, Admitted: err == nil})
	}
}

func (e *events) wait(ctx context.Context, ev WaitEvent) {
	for _, o := range e.observers {
		notifyWith(e, ctx, o.Wait, ev)
	}
}
