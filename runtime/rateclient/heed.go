package rateclient

import (
	"context"
	"log/slog"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/report"
)

// heed does what an answer asks for, which has arrived at now. It returns when the request
// may be sent again, if the peer has refused it, and else a time long after.
func (c *Call) heed(ctx context.Context, a Answer, now time.Time) time.Time {
	c.peer.spread.add(now.Sub(c.charged), now)
	never := now.Add(2 * maxTime)
	if a.Contradicts {
		c.transport.lines.Find(report.Contradiction, c.rule().Name, "")
	}
	keys := &c.peer.limits[0].keys
	s := keys.find(c.name, now)
	c.follow(&a, s.pacedFor(now) > 0, now)
	c.endAsking()
	if !a.Refused && a.HoldOff > 0 && c.countDecides(ctx, &a) {
		a.HoldOff = 0
	}
	if !a.Refused && a.HoldOff == 0 {
		if s != nil {
			s.served()
		}
		return never
	}
	s = keys.get(c.name, now)
	d, bounded := s.holdFor(&a, &c.peer.Peer, now)
	until := now.Add(d)
	var err error
	if s.hold(until, c.charged, c.peer.limits[0].pace.Window) {
		if err = c.hold(context.WithoutCancel(ctx), d); err == nil {
			s.stored(until, time.Now())
		}
	}
	if a.Refused {
		c.transport.limiter.PeerRefused(ctx, c.rule())
	}
	c.report(ctx, &a, d, bounded, err)
	if !a.Refused {
		return never
	}
	return until
}

// keyName returns the i-th key of the request as text.
func (c *Call) keyName(i int) string {
	if i == 0 {
		return c.name
	}
	return c.keys[i].String()
}

// holdFor returns for how long an answer holds back calls, and whether it has wanted more.
func (s *keyState) holdFor(a *Answer, p *Peer, now time.Time) (d time.Duration, bounded bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d = a.HoldOff
	if d == 0 {
		if !now.Before(s.held) { // what was sent before that was known adds nothing
			s.refusals++
		}
		d = p.Unsaid << min(max(s.refusals-1, 0), 20)
		if d <= 0 || d > p.MaxHold {
			return p.MaxHold, false
		}
		return d, false
	}
	s.refusals = 0
	return min(d, p.MaxHold), d > p.MaxHold
}

// served notes that the peer has served a request.
func (s *keyState) served() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusals = 0
}

// hold holds calls back in this process, until Redis does. It returns false if they are
// held back for as long already: but not if the request was charged when Redis had been told so,
// since then it does not know it any more.
func (s *keyState) hold(until, charged time.Time, window time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !until.After(s.held.Add(time.Millisecond)) && !charged.After(s.kept) {
		return false
	}
	s.held, s.until, s.paced = until, until, until.Add(evenly(time.Until(until), window))
	return true
}

// stored notes that Redis holds calls back until then, as of now.
func (s *keyState) stored(until, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = now
	if s.until.Equal(until) {
		s.until = time.Time{}
	}
}

// holdLeft returns for how long this process holds calls back by itself.
func (s *keyState) holdLeft(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(0, s.until.Sub(now))
}

// learn notes that a hold has denied a call, which perhaps another replica has begun.
func (s *keyState) learn(d *runtime.Decision, now time.Time, window time.Duration) {
	if s == nil || !d.Blocked {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if paced := now.Add(d.RetryAfter + evenly(d.RetryAfter, window)); paced.After(s.paced) {
		s.paced = paced
	}
}

// evenly returns for how long calls go on evenly after a hold: for a window, but not for
// much longer than calls have gathered.
func evenly(hold, window time.Duration) time.Duration {
	return min(window, max(hold, time.Minute))
}

// pacedFor returns for how long calls still go on evenly, since a hold has just been over.
func (s *keyState) pacedFor(now time.Time) time.Duration {
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(0, s.paced.Sub(now))
}

// report logs that a peer holds calls back, unless there was such a line just before.
func (c *Call) report(ctx context.Context, a *Answer, hold time.Duration, bounded bool, err error) {
	skipped, ok := c.peer.log.Due(clock.Now())
	if !ok {
		return
	}
	logger := c.transport.logger
	if logger == nil {
		logger = slog.Default()
	}
	text := "a peer has no more room for calls"
	if a.Refused {
		text = "a peer has refused a call"
	}
	attrs := []slog.Attr{slog.String("peer", c.peer.Pattern), slog.String("rule", c.rule().Name), slog.Int("status", a.Status),
		slog.Duration("hold", hold), slog.Bool("bounded", bounded), slog.Int64("skipped", skipped)}
	if err != nil {
		attrs = append(attrs, slog.Any("error", err))
	}
	logger.LogAttrs(ctx, slog.LevelWarn, text, attrs...)
}
