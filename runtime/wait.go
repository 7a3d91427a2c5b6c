package runtime

import (
	"context"
	"time"

	"github.com/rategen/rategen/runtime/internal/decide"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// pollPause is how often a call that waits looks whether what nobody tells it of has
// changed: the kill switch and the load.
const pollPause = 50 * time.Millisecond

// releasePause is how often a call that is held back asks whether somebody has released
// its key.
const releasePause = time.Second

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

// leftOver reports whether an admitted request has left permits for the next call
// in its line, or is no longer bound by them.
func (r *request) leftOver() bool {
	for i := range r.Charges {
		if c := &r.Charges[i]; r.Turn.For(c.Key, c.Own) {
			return r.Tries[i].Remaining > 0 || r.Tries[i].Shadow
		}
	}
	return true
}

// pause returns how long a denied request waits before it is decided again, and
// whether every limit that denied it allows that wait. A queue has taken the wait
// into account already. It returns 0 if the request waits for permits only: nobody
// knows when they are returned.
func (r *request) pause() (time.Duration, bool) {
	longest := time.Duration(0)
	for i := range r.Tries {
		t := &r.Tries[i]
		if t.Allowed || t.Shadow {
			continue
		}
		if t.Algorithm == terms.Permits {
			if t.Wait <= 0 || t.RetryAfter == Never {
				return 0, false
			}
			continue
		}
		if t.RetryAfter > t.Wait || t.Algorithm == terms.Queue && !t.Blocked {
			return 0, false
		}
		rest := t.RetryAfter
		if t.Blocked && t.Holds {
			rest = min(rest, releasePause)
		}
		longest = max(longest, rest)
	}
	return longest, true
}

// pause waits for as long as a denied request's pause says, or in the line for
// permits; and no longer than what holds for it.
func (l *Limiter) pause(ctx context.Context, req *request, limits []Limit, pause time.Duration) error {
	if pause == 0 {
		return l.awaitPermits(ctx, req)
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
			if j := req.chargeOf(i); j >= 0 && req.Tries[j].Delay > passed {
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

// delay returns how long an admitted request must wait for its turn. A shadow
// queue delays nobody.
func (r *request) delay() time.Duration {
	longest := time.Duration(0)
	for i := range r.Tries {
		if t := &r.Tries[i]; !t.Shadow {
			longest = max(longest, t.Delay)
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

// adapts reports whether load scales a limit of the request.
func (r *request) adapts() bool {
	for i := range r.Charges {
		if r.Charges[i].Plan.Adapts {
			return true
		}
	}
	return false
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
		if j := req.chargeOf(i); j >= 0 {
			if p, on, err := l.planOf(&limits[i]); err != nil || !on || p.Key != req.Charges[j].Plan.Key {
				return false
			}
		}
	}
	return l.Enabled()
}
