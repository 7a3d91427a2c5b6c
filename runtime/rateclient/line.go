package rateclient

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/runtime"
)

// longPause is the longest time after which who is first in a line asks again: what it
// waits for may have changed, since somebody has released a hold or raised the limit.
const longPause = time.Second

// maxSpread is the longest time over which those ask at random who wait for the same part of the
// limit to be free again. It is a 128th of the window at most.
const maxSpread = 80 * time.Millisecond

// A line is where requests of this process wait for one key that may fill the same share
// of the limit, in order. Only the first one asks for room.
type line struct {
	share   float64
	waiting []*waiter // the first one's turn it is
	next    time.Time // when it asks again
}

// A waiter is a request in a line.
type waiter struct {
	line     *line
	deadline time.Time
	called   chan struct{} // closed when it is its turn, or when it is too late for that
	late     bool
}

// admit charges the limits of a request, and waits in line for that if need be. If a function of
// the peer's limits panics the request is not sent.
func (c *Call) admit(r *http.Request) (err error) {
	defer func() {
		if value := recover(); value != nil {
			c.transport.lines.Panic("peer limit", value)
			err = fmt.Errorf("rateclient: peer %q: its Key, Cost or Share has panicked", c.peer.Pattern)
		}
	}()
	c.share = 1
	for i, l := range c.peer.limits {
		if c.keys[i] = (runtime.Key{}); l.Key != nil {
			l.Key(r, &c.keys[i])
		}
		c.share = min(c.share, l.share(r))
	}
	c.name = c.keys[0].String()
	first, now := &c.peer.limits[0].keys, time.Now()
	s := first.find(c.name, now)
	if !s.busy(c.share, now) {
		d, err := c.take(r)
		if err == nil || d.RetryAfter == 0 {
			return err // nothing to wait for
		}
		now = time.Now()
		if s == nil && (d.Blocked || c.inTime(now, d.RetryAfter)) {
			s = first.get(c.name, now)
		}
		if !c.inTime(now, d.RetryAfter) {
			return err
		}
	}
	over, admitted := bridge.LimiterOf(c.transport.limiter).Waits(r.Context(), c.rule()), false
	defer func() { over(admitted) }()
	err = c.wait(r, s)
	if late, ok := err.(tooLate); ok {
		err = bridge.LimiterOf(c.transport.limiter).TooLate(r.Context(), c.limit(r, 0), time.Duration(late))
	}
	admitted = err == nil
	return err
}

// tooLate is the error of a request whose turn comes too late: after that time at the soonest.
type tooLate time.Duration

func (tooLate) Error() string { return "" }

// inTime reports whether a request may still be sent after a time.
func (c *Call) inTime(now time.Time, d time.Duration) bool {
	return d < maxTime && !now.Add(d).After(c.deadline)
}

// wait has a request wait for its turn in a line, and charges its limits then.
func (c *Call) wait(r *http.Request, s *keyState) error {
	w, ok := s.enter(c.share, c.deadline)
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
	l := c.peer.limits[0]
	for tries := 0; ; tries++ {
		now := time.Now()
		pause := s.holdLeft(now)
		if pause == 0 {
			d, err := c.take(r)
			if err == nil || d.RetryAfter == 0 {
				return err
			}
			now = time.Now()
			if !c.inTime(now, d.RetryAfter) {
				return err
			}
			pause = min(l.aim(&d, now.Sub(c.charged), tries), c.deadline.Sub(now))
		}
		if !c.inTime(now, pause) {
			return c.late(s)
		}
		s.delay(w, now.Add(pause))
		timer.Reset(min(pause, longPause))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// aim returns when to ask again after a denial, of which the answer took a trip. By the
// clock of Redis RetryAfter began when it decided, so that a replica that is far from Redis
// asks as early as others do. Where trips may take longer than events are apart it would come too
// late for each, since who is near would be first: then each asks at random in a time that begins
// with RetryAfter. If its trips take longer all the same it asks, every other time, when
// one of the next events leaves the window.
func (l *limit) aim(d *runtime.Decision, trip time.Duration, tries int) time.Duration {
	pause, apart := d.RetryAfter-trip, l.Rule.Window/time.Duration(l.Rule.Max)
	switch {
	case d.Blocked, d.Rule == l.pace.Name: // after a hold calls go on evenly, and no faster later
	case apart < 2*maxSpread:
		pause += rand.N(min(maxSpread, l.Rule.Window/marginShare/2) + 1)
	case pause < 0 && trip > apart && tries%2 == 1:
		pause += (-pause/apart + 1) * apart
	}
	return max(0, pause)
}

// late returns the time until the turn of a request that does not come in time.
func (c *Call) late(s *keyState) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, before := &c.peer.limits[0].Rule, 0
	wait := max(time.Until(s.until), time.Millisecond)
	if line := s.line(c.share); line != nil {
		before, wait = max(0, len(line.waiting)-1), max(wait, time.Until(line.next))
	}
	return tooLate(wait + time.Duration(float64(before)/float64(l.Max)*float64(l.Window)))
}

// line returns where requests wait that may fill a share, or nil.
func (s *keyState) line(share float64) *line {
	for _, l := range s.lines {
		if l.share == share {
			return l
		}
	}
	return nil
}

// busy reports whether requests that may fill a share have to stand in line.
func (s *keyState) busy(share float64, now time.Time) bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.line(share) != nil || now.Before(s.until)
}

// enter adds a request to the end of its line, unless it is too late for it already.
func (s *keyState) enter(share float64, deadline time.Time) (w *waiter, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.line(share)
	if l != nil && deadline.Before(l.next) || deadline.Before(s.until) {
		return nil, false
	}
	if l == nil {
		l = &line{share: share}
		s.lines = append(s.lines, l)
	}
	w = &waiter{line: l, deadline: deadline, called: make(chan struct{})}
	if l.waiting = append(l.waiting, w); len(l.waiting) == 1 {
		close(w.called)
	}
	return w, true
}

// leave takes a request out of its line, and calls the next one if it was the first.
func (s *keyState) leave(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := w.line
	i := slices.Index(l.waiting, w)
	if i < 0 {
		return // it was called since it is too late
	}
	l.waiting = slices.Delete(l.waiting, i, i+1)
	switch {
	case len(l.waiting) == 0:
		s.lines = slices.DeleteFunc(s.lines, func(other *line) bool { return other == l })
	case i == 0:
		close(l.waiting[0].called)
	}
}

// delay has the line of its first request stand still until a time. Those leave it whose
// turn cannot come before their deadline.
func (s *keyState) delay(first *waiter, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := first.line
	l.next = until
	for i := len(l.waiting) - 1; i > 0; i-- {
		if w := l.waiting[i]; w.deadline.Before(until) {
			w.late = true
			close(w.called)
			l.waiting = slices.Delete(l.waiting, i, i+1)
		}
	}
}
