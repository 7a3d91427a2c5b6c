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
		if c.Allowed || c.Rule.Mode == Shadow {
			continue
		}
		if c.Rule.Algorithm == Concurrency {
			if c.Wait <= 0 || c.RetryAfter == Never {
				return 0, false
			}
			continue
		}
		if c.RetryAfter > c.Wait || c.Rule.queues() {
			return 0, false
		}
		longest = max(longest, c.RetryAfter)
	}
	return longest, true
}

// pause waits for as long as a denied request's pause says, or in the line for
// permits.
func (l *Limiter) pause(ctx context.Context, req *request, pause time.Duration) error {
	if pause == 0 {
		return l.permits.again(ctx, req)
	}
	req.leaveLine(true)
	return sleep(ctx, pause)
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

// sleep waits for d, and returns early with the context's error when that ends
// first.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
