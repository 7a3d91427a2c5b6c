package rateclient

import (
	"context"
	"log/slog"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/peerstate"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/report"
)

// heed does what an answer asks for, which has arrived at now. It returns when the request
// may be sent again, if the peer has refused it, and else a time long after.
func (c *Call) heed(ctx context.Context, a Answer, now time.Time) time.Time {
	never := now.Add(2 * maxTime)
	if a.Contradicts {
		c.transport.lines.Find(report.Contradiction, c.rule().Name, "")
	}
	keys := &c.peer.limits[0].keys
	c.follow(ctx, &a, now)
	if !a.Refused && a.HoldOff > 0 && c.countDecides(ctx, &a) {
		a.HoldOff = 0
	}
	if !a.Refused && a.HoldOff == 0 {
		if s := keys.find(c.name, now); s != nil {
			s.served()
		}
		return never
	}
	s := keys.get(c.name, now)
	d, bounded := s.holdFor(&a, &c.peer.Peer, now)
	until := now.Add(d)
	s.hold(until)
	err := c.hold(context.WithoutCancel(ctx), d)
	if err == nil {
		s.stored(until)
	}
	c.say(ctx, 0, peerstate.Said{Evenly: c.peer.limits[0].evenly(d)})
	if a.Refused {
		bridge.LimiterOf(c.transport.limiter).PeerRefused(ctx, c.rule())
	}
	c.report(ctx, &a, d, bounded, err)
	if !a.Refused {
		return never
	}
	return until
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

// hold holds calls back in this process, until Redis does. Each answer is stored, also one that
// asks for less than is known here: somebody may have released the key in Redis since.
func (s *keyState) hold(until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if until.After(s.held) {
		s.held = until
	}
	if until.After(s.until) {
		s.until = until
	}
}

// stored notes that Redis holds calls back until then.
func (s *keyState) stored(until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.until.After(until) {
		s.until = time.Time{}
	}
}

// holdLeft returns for how long this process holds calls back by itself.
func (s *keyState) holdLeft(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(0, s.until.Sub(now))
}

// evenly returns for how long calls do not go on all at once when a hold begins: until it ends,
// and for a window after it, but not for much longer than calls have gathered.
func (l *limit) evenly(hold time.Duration) time.Duration {
	return hold + min(l.rule.Window, max(hold, time.Minute))
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
