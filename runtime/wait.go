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
// into account already.
func (r *request) pause() (time.Duration, bool) {
	longest := time.Duration(0)
	for i := range r.charges {
		c := &r.charges[i]
		if c.Allowed || c.Rule.Mode == Shadow {
			continue
		}
		if c.RetryAfter > c.Wait || c.Rule.queues() {
			return 0, false
		}
		longest = max(longest, c.RetryAfter)
	}
	return longest, true
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
