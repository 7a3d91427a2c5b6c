package runtime

import (
	"context"
	"time"
)

// start returns the time from which the request's waiting counts, or the zero
// time if none of its rules has a Wait.
func (r *request) start() time.Time {
	for i := range r.charges {
		if r.charges[i].Rule.Wait > 0 {
			return time.Now()
		}
	}
	return time.Time{}
}

// limitWait sets how long each charge may still wait: the rest of its rule's
// Wait, or of the time until the context's deadline if that is shorter.
func (r *request) limitWait(ctx context.Context, start time.Time) {
	if start.IsZero() {
		return
	}
	now := time.Now()
	left := Never
	if deadline, ok := ctx.Deadline(); ok {
		left = max(0, deadline.Sub(now))
	}
	for i := range r.charges {
		c := &r.charges[i]
		c.Wait = min(left, max(0, c.Rule.Wait-now.Sub(start)))
	}
}

// pause returns how long a denied request waits before it is decided again, and
// whether every limit that denied it allows that wait. A queue has taken the wait
// into account already. It returns 0 if the request waits for permits only: nobody
// knows when they are returned.
func (r *request) pause() (time.Duration, bool) {
	longest := time.Duration(0)
	for i := range r.charges {
		c := &r.charges[i]
		if c.Allowed || !c.Rule.Mode.Denies() {
			continue
		}
		if c.Rule.Algorithm == Concurrency {
			if c.Wait <= 0 || c.RetryAfter == Never {
				return 0, false
			}
			continue
		}
		if c.RetryAfter > c.Wait || c.Rule.queues() && !c.Blocked {
			return 0, false
		}
		longest = max(longest, c.RetryAfter)
	}
	return longest, true
}

// pause waits for as long as a denied request's pause says, or in the line for
// permits; and no longer than what holds for it.
func (l *Limiter) pause(ctx context.Context, req *request, limits []Limit, pause time.Duration) error {
	if pause == 0 {
		return l.permits.again(ctx, req)
	}
	req.leaveLine(true)
	for end := instant() + pause; pause > 0; pause = end - instant() {
		if changed, err := l.sleep(ctx, req, pause); err != nil || changed && !l.holds(req, limits) {
			return err
		}
	}
	return nil
}

// awaitTurn waits for the turn of an admitted request in queues. A queue that becomes
// faster meanwhile brings the turn nearer, and one that is gone has none.
func (l *Limiter) awaitTurn(ctx context.Context, req *request, limits []Limit) error {
	began := instant()
	for {
		changed, err := l.sleep(ctx, req, req.delay()-(instant()-began))
		if err != nil || !changed {
			return err
		}
		passed := req.terms.end(instant()) - began
		req.terms = l.overrides.Load()
		for i := range limits {
			if c := req.chargeOf(i); c != nil && c.Delay > passed {
				l.hasten(c, &limits[i], passed)
			}
		}
	}
}

// hasten moves the turn of a charge to the place that it has by what holds now. As many
// are before it as were when a part of its delay had passed.
func (l *Limiter) hasten(c *Charge, limit *Limit, passed time.Duration) {
	rule, max, on, err := l.effective(limit)
	switch {
	case !on || !l.Enabled() || err == nil && !rule.Mode.Denies():
		c.Delay = 0
	case err == nil && c.source != SourceLocal && max > 0:
		rate := float64(max) / float64(rule.Window) * float64(c.Rule.Window) / float64(c.Max)
		if rate > 1 {
			c.Delay = passed + time.Duration(float64(c.Delay-passed)/rate)
			c.Rule, c.Max = rule, max
		}
	}
}

// delay returns how long an admitted request must wait for its turn. A shadow
// queue delays nobody.
func (r *request) delay() time.Duration {
	longest := time.Duration(0)
	for i := range r.charges {
		if c := &r.charges[i]; c.Rule.Mode == Enforce {
			longest = max(longest, c.Delay)
		}
	}
	return longest
}

// sleep waits for d, or until what holds for a request may have changed, which it then
// reports. It returns early with the context's error when that ends first.
func (l *Limiter) sleep(ctx context.Context, req *request, d time.Duration) (changed bool, err error) {
	if d <= 0 {
		return false, nil
	}
	if l.enabled != nil || req.adapts() { // which tell nobody
		changed, d = d > longPause, min(d, longPause)
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

// adapts reports whether load scales a limit of the request.
func (r *request) adapts() bool {
	for i := range r.charges {
		if r.charges[i].Rule.Adaptive != nil {
			return true
		}
	}
	return false
}

// renew makes the charges of a request that has waited anew, by what holds now.
func (l *Limiter) renew(ctx context.Context, req *request, limits []Limit) error {
	req.again = true
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
		if c := req.chargeOf(i); c != nil {
			if rule, max, on, err := l.effective(&limits[i]); err != nil || !on || rule != c.Rule || max != c.Max {
				return false
			}
		}
	}
	return l.Enabled()
}
