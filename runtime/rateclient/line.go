package rateclient

import (
	"net/http"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime"
)

// longPause is the longest time after which who is first in a line asks again: what it
// waits for may have changed, since somebody has released a hold or raised the limit.
const longPause = time.Second

// A line is where requests of this process wait for one key, in order. Only the first one
// asks for room.
type line struct {
	waiting []*waiter // the first one's turn it is
	next    time.Time // when it asks again
}

// A waiter is a request in a line.
type waiter struct {
	deadline time.Time
	called   chan struct{} // closed when it is its turn, or when it is too late for that
	late     bool
}

// admit charges the limits of a request, and waits in line for that if need be.
func (c *Call) admit(r *http.Request) error {
	for i, l := range c.peer.limits {
		if c.keys[i] = (runtime.Key{}); l.Key != nil {
			l.Key(r, &c.keys[i])
		}
	}
	c.name = c.keys[0].String()
	first, now := &c.peer.limits[0].keys, time.Now()
	s := first.find(c.name, now)
	if !s.busy(now) {
		d, err := c.take(r, s)
		if err == nil || d.RetryAfter == 0 {
			return err // nothing to wait for
		}
		now = time.Now()
		if s == nil && (d.Blocked || c.inTime(now, d.RetryAfter)) {
			s = first.get(c.name, now)
		}
		s.learn(&d, now, c.peer.limits[0].Rule.Window)
		if !c.inTime(now, d.RetryAfter) {
			return err
		}
	}
	over := c.transport.limiter.Waits(r.Context(), c.rule())
	err := c.wait(r, s)
	over(err == nil)
	return err
}

// inTime reports whether a request may still be sent after a time.
func (c *Call) inTime(now time.Time, d time.Duration) bool {
	return d < maxTime && !now.Add(d).After(c.deadline)
}

// wait has a request wait for its turn in a line, and charges its limits then.
func (c *Call) wait(r *http.Request, s *keyState) error {
	w, ok := s.enter(c.deadline)
	if !ok {
		return c.late(s)
	}
	defer s.leave(w)
	ctx := r.Context()
	timer := time.NewTimer(time.Until(c.deadline))
	defer timer.Stop()
	select {
	case <-w.called:
	case <-timer.C:
		return c.late(s)
	case <-ctx.Done():
		return ctx.Err()
	}
	if w.late {
		return c.late(s)
	}
	for {
		now := time.Now()
		pause := s.holds(now)
		if pause == 0 {
			d, err := c.take(r, s)
			if err == nil || d.RetryAfter == 0 {
				return err
			}
			now = time.Now()
			s.learn(&d, now, c.peer.limits[0].Rule.Window)
			if !c.inTime(now, d.RetryAfter) {
				return err
			}
			pause = d.RetryAfter
		}
		if !c.inTime(now, pause) {
			return c.late(s)
		}
		s.delay(now.Add(pause))
		timer.Reset(min(pause, longPause))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// late returns the error of a request whose turn does not come in time.
func (c *Call) late(s *keyState) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &c.peer.limits[0].Rule
	before := max(0, len(s.line.waiting)-1)
	wait := max(time.Until(s.line.next), time.Until(s.until), time.Millisecond)
	return &runtime.LimitedError{Rule: l.Name, Limit: l.Max, RetryAfter: wait + time.Duration(float64(before)/float64(l.Max)*float64(l.Window))}
}

// busy reports whether requests have to stand in line.
func (s *keyState) busy(now time.Time) bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.line.waiting) > 0 || now.Before(s.until)
}

// enter adds a request to the end of the line, unless it is too late for it already.
func (s *keyState) enter(deadline time.Time) (w *waiter, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.line.waiting) > 0 && deadline.Before(s.line.next) || deadline.Before(s.until) {
		return nil, false
	}
	w = &waiter{deadline: deadline, called: make(chan struct{})}
	if s.line.waiting = append(s.line.waiting, w); len(s.line.waiting) == 1 {
		close(w.called)
	}
	return w, true
}

// leave takes a request out of the line, and calls the next one if it was the first.
func (s *keyState) leave(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.line.waiting, w)
	if i < 0 {
		return // it was called since it is too late
	}
	s.line.waiting = slices.Delete(s.line.waiting, i, i+1)
	if i == 0 && len(s.line.waiting) > 0 {
		close(s.line.waiting[0].called)
	}
}

// delay has the line stand still until a time. Those leave it whose turn cannot come
// before their deadline.
func (s *keyState) delay(until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.line.next = until
	for i := len(s.line.waiting) - 1; i > 0; i-- {
		if w := s.line.waiting[i]; w.deadline.Before(until) {
			w.late = true
			close(w.called)
			s.line.waiting = slices.Delete(s.line.waiting, i, i+1)
		}
	}
}
