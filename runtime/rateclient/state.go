package rateclient

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/rategen/rategen/internal/peerstate"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/report"
)

// All replicas know of the key of a limit what its peer has said, by the store: until when the key is
// blocked, until when calls go on evenly then, and which max the peer has set, see package peerstate.
// An account is what this process knows besides of the first key of a request.
//
// An answer changes it, see [Call.obey]:
//
//	refused, with a time       calls are held back for it, and go on evenly for a while after
//	refused, without           the same, for Unsaid, doubled with each that comes when the one before is over
//	served, nothing remains    the same until there is more, unless the limit's own count has no room either
//	served otherwise           the next refusal without a time is the first
//	of a limit of its window   the max of a limit follows, see [Call.learnMaxes]
//
// A call may go, see [Call.wait], when this process does not hold it back, when it is the first in its
// line, and when its limits have room in the store, and while calls go on evenly the pace has, too.
type account struct {
	mu sync.Mutex

	used     time.Time // at the latest
	refusals int       // without a time, in a row
	holdEnd  time.Time // until when the latest answer holds back calls
	inStore  bool      // the store does so, and this process need not
	lines    []*line
}

// served notes that the peer has served a request.
func (a *account) served() {
	if a != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.refusals = 0
	}
}

// hold has this process hold calls back by an answer, until the store does. It returns for how long,
// and whether the peer has wanted more. Each answer is stored, also one that asks for less than the
// one before: somebody may have released the key since.
func (a *account) hold(by *Answer, p *Peer, now time.Time) (d time.Duration, bounded bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if d = by.HoldOff; d > 0 {
		a.refusals = 0
	} else {
		if !now.Before(a.holdEnd) { // what was sent before that was known adds nothing
			a.refusals++
		}
		d = p.Unsaid << min(max(a.refusals-1, 0), 20)
	}
	if d <= 0 || d > p.MaxHold {
		d = p.MaxHold
	}
	if until := now.Add(d); a.inStore || until.After(a.holdEnd) {
		a.holdEnd, a.inStore = until, false
	}
	return d, by.HoldOff > d
}

// noteInStore notes that the store holds calls back until a time.
func (a *account) noteInStore(until time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.inStore = a.inStore || !until.Before(a.holdEnd)
}

// heldFor returns for how long this process holds calls back by itself. Its caller holds mu.
func (a *account) heldFor(now time.Time) time.Duration {
	if a.inStore {
		return 0
	}
	return max(0, a.holdEnd.Sub(now))
}

// obey does what an answer asks for that has arrived at now. It returns when the request may be sent
// again, if the peer has refused it, and else a time long after.
func (c *Call) obey(ctx context.Context, a Answer, now time.Time) time.Time {
	never := now.Add(2 * maxTime)
	if a.Contradicts {
		c.transport.lines.Find(report.Contradiction, c.rule().Name, "")
	}
	c.learnMaxes(ctx, &a)
	if !a.Refused && (a.HoldOff == 0 || c.countDecides(ctx, &a)) {
		c.accounts().find(c.name, now).served()
		return never
	}
	account := c.accounts().get(c.name, now)
	d, bounded := account.hold(&a, &c.peer.Peer, now)
	until := now.Add(d)
	err := c.transport.limiter.Hold(context.WithoutCancel(ctx), c.peer.limits[0].all(&c.keys[0]), d)
	if err == nil {
		account.noteInStore(until)
	}
	c.say(ctx, 0, peerstate.Said{Evenly: c.peer.limits[0].evenly(d)})
	c.report(ctx, &a, d, bounded, err)
	if !a.Refused {
		return never
	}
	c.transport.engine.PeerRefused(ctx, c.rule())
	return until
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

// say tells all replicas what the peer has said about the i-th key of the request, if that is
// anything, and returns the max that it has set by then.
func (c *Call) say(ctx context.Context, i int, said peerstate.Said) int64 {
	l := c.peer.limits[i]
	if said.Max > 0 {
		said.Max = min(max(said.Max, l.least), l.most)
	}
	known := c.transport.engine.Peer(ctx, l.rule.Limit(&c.keys[i]), &l.said, said)
	c.maxes[i] = known.Max
	if i == 0 {
		c.paceEnd = known.Paced
	}
	return known.Max
}

// fewNamed are so many answers that a peer which may set a max, and names one, has done so by then.
const fewNamed = 100

// learnMaxes has what a peer says about its limits set the max of the keys of a request. That of
// limits without a Most it lowers only while calls go on evenly after a hold: by then
// it has said that nothing remains although this side has counted less.
func (c *Call) learnMaxes(ctx context.Context, a *Answer) {
	paced := time.Now().Before(c.paceEnd)
	for i, l := range c.peer.limits {
		j := slices.IndexFunc(a.Quotas, func(q Quota) bool { return q.Limit >= 0 && q.Window > 0 && l.names(&q) })
		if l.Most > 0 && j >= 0 {
			l.unnamed.Store(0)
		} else if l.Most > 0 && l.unnamed.Add(1) == fewNamed {
			c.transport.lines.Find(report.UnnamedLimit, l.Rule.Name, "")
		}
		if j >= 0 && (l.Most > 0 || paced || c.maxes[i] > 0) {
			c.say(ctx, i, peerstate.Said{Max: max(1, a.Quotas[j].Limit)})
		}
	}
}

// countDecides reports whether an answer holds back calls only since nothing remains, and the limits'
// own counts do so as well. A 64th may be between them, since requests arrive in another order
// than they were charged. If the peer has counted more, and named the limit that it goes by, its
// max is taken over, so that this happens once.
func (c *Call) countDecides(ctx context.Context, a *Answer) bool {
	longest := time.Duration(0)
	for i := range a.Quotas {
		q := &a.Quotas[i]
		if !q.isSpent() || q.gradual {
			continue
		}
		longest = max(longest, q.Reset)
		j := slices.IndexFunc(c.peer.limits, func(l *limit) bool { return l.names(q) })
		if j < 0 {
			return false
		}
		most := c.peer.limits[j].max(c.maxes[j], 1)
		if left := c.remaining(ctx, j, most); left > most/marginShare {
			if q.Limit > 0 && q.Window > 0 && most-left >= q.Limit-q.Limit/marginShare {
				c.say(ctx, j, peerstate.Said{Max: q.Limit})
			}
			return false
		}
	}
	return a.HoldOff <= longest
}

// remaining returns how much is left of the i-th limit: as of the charge if that says enough, and
// else as of now.
func (c *Call) remaining(ctx context.Context, i int, most int64) int64 {
	l := c.peer.limits[i]
	if l.Share == nil && c.least == l.Rule.Name && c.left <= most/marginShare {
		return c.left
	}
	d, err := c.transport.limiter.Peek(context.WithoutCancel(ctx), l.all(&c.keys[i]).WithMax(most))
	if err != nil || d.Blocked {
		return most
	}
	return d.Remaining
}
