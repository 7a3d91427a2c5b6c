package rateclient

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime"
)

// longPause is the longest time after which who is first in a line asks again: what it
// waits for may have changed, since somebody has released a hold or raised the limit.
const longPause = time.Second

// maxSpread is the longest time over which those ask at random who wait for the same part of the
// limit to be free again. It is a 128th of the window at most.
const maxSpread = 80 * time.Millisecond

// A lane is what requests have in common that wait for one key in one line: which part of the limits they
// may fill, the smallest, and which tenants of divided limits they are of.
type lane struct {
	share  float64
	tenant string
}

// A line is where requests of this process wait for one key in a lane, in order. Only the first one asks
// for room.
type line struct {
	lane    lane
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

// admit charges the limits of a request, and waits in line for that if need be. That is one decision,
// whatever it takes. If a function of the peer's limits panics the request is not sent.
func (c *Call) admit(r *http.Request) (err error) {
	defer func() {
		if value := recover(); value != nil {
			c.transport.lines.Panic("peer limit", value)
			err = fmt.Errorf("rateclient: peer %q: its Key, Cost, Share or Tenant has panicked", c.peer.Pattern)
		}
	}()
	c.lane = lane{share: 1}
	for i, l := range c.peer.limits {
		c.keys[i] = runtime.Key{}
		if l.Key != nil {
			l.Key(r, &c.keys[i])
		}
		c.lane.share = min(c.lane.share, l.share(r))
		if l.Tenant != nil {
			var tenant runtime.Key
			l.Tenant(r, &tenant)
			c.lane.tenant += tenant.String() + "\n"
		}
	}
	c.name = c.keys[0].String()
	now := time.Now()
	a := c.accounts().find(c.name, now)
	if !a.busy(c.lane, now) {
		if _, again, err := c.take(r, 0); !again {
			return err
		}
		a = c.accounts().get(c.name, time.Now())
	}
	over, admitted := c.transport.engine.Waits(r.Context(), c.rule()), false
	defer func() { over(admitted) }()
	late, err := c.wait(r, a, now)
	if late > 0 {
		err = c.transport.engine.TooLate(r.Context(), c.limit(r, 0), time.Since(now), late)
	}
	admitted = err == nil
	return err
}

// wait has a request that came at a time wait for its turn in a line, and charges its limits then. If
// that is too late it returns the time until then, at the soonest.
func (c *Call) wait(r *http.Request, a *account, came time.Time) (late time.Duration, err error) {
	w := a.enter(c.lane, c.deadline)
	if w == nil {
		return c.late(a), nil
	}
	defer a.leave(w)
	timer := time.NewTimer(time.Until(c.deadline))
	defer timer.Stop()
	for called, tries := w.called, 0; ; tries++ {
		select {
		case <-called:
			called = nil
		case <-timer.C:
		case <-r.Context().Done():
			return 0, r.Context().Err()
		case <-c.transport.engine.Closed():
			return 0, c.transport.engine.Refuse(r.Context(), runtime.ErrClosed)
		}
		if called != nil || w.late {
			return c.late(a), nil
		}
		now := time.Now()
		pause := a.heldBack(now)
		if pause == 0 {
			d, again, err := c.take(r, now.Sub(came))
			if !again {
				return 0, err
			}
			now = time.Now()
			pause = min(c.peer.limits[0].aim(&d, now.Sub(c.charged), tries), c.deadline.Sub(now))
		}
		if now.Add(pause).After(c.deadline) {
			return c.late(a), nil
		}
		a.delay(w, now.Add(pause))
		timer.Reset(min(pause, longPause))
	}
}

// aim returns when to ask again after a refusal, of which the answer took a trip. By the
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
func (c *Call) late(a *account) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	l, before := c.rule(), 0
	wait := max(a.heldFor(time.Now()), time.Millisecond)
	if line := a.line(c.lane); line != nil {
		before, wait = max(0, len(line.waiting)-1), max(wait, time.Until(line.next))
	}
	return wait + time.Duration(float64(before)/float64(l.Max)*float64(l.Window))
}

// line returns where requests of a lane wait, or nil.
func (a *account) line(of lane) *line {
	for _, l := range a.lines {
		if l.lane == of {
			return l
		}
	}
	return nil
}

// busy reports whether requests of a lane have to stand in line.
func (a *account) busy(of lane, now time.Time) bool {
	if a == nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.line(of) != nil || a.heldFor(now) > 0
}

// heldBack returns for how long this process holds calls back by itself.
func (a *account) heldBack(now time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.heldFor(now)
}

// enter adds a request to the end of its line. It returns nil if it is too late for it already.
func (a *account) enter(of lane, deadline time.Time) *waiter {
	a.mu.Lock()
	defer a.mu.Unlock()
	l, now := a.line(of), time.Now()
	if l != nil && deadline.Before(l.next) || deadline.Before(now.Add(a.heldFor(now))) {
		return nil
	}
	if l == nil {
		l = &line{lane: of}
		a.lines = append(a.lines, l)
	}
	w := &waiter{line: l, deadline: deadline, called: make(chan struct{})}
	if l.waiting = append(l.waiting, w); len(l.waiting) == 1 {
		close(w.called)
	}
	return w
}

// leave takes a request out of its line, and calls the next one if it was the first.
func (a *account) leave(w *waiter) {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := w.line
	i := slices.Index(l.waiting, w)
	if i < 0 {
		return // it was called since it is too late
	}
	l.waiting = slices.Delete(l.waiting, i, i+1)
	if len(l.waiting) == 0 {
		a.lines = slices.DeleteFunc(a.lines, func(other *line) bool { return other == l })
	} else if i == 0 {
		close(l.waiting[0].called)
	}
}

// delay has the line of its first request stand still until a time. Those leave it whose
// turn cannot come before their deadline.
func (a *account) delay(first *waiter, until time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
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
