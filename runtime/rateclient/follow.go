package rateclient

import (
	"context"
	"slices"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/peerstate"
	"github.com/rategen/rategen/runtime/internal/report"
)

// fewNamed are so many answers that a peer which may set a max, and names one, has done so by then.
const fewNamed = 100

// names reports whether a quota of the peer may be what the limit counts: it has the same window,
// or one that is unknown and ends in the second half of such a window.
func (l *limit) names(q *Quota) bool {
	return q.Unit == l.Unit && (q.Window == l.Rule.Window || q.Window == 0 && q.Reset > l.Rule.Window/2 && q.Reset <= l.Rule.Window)
}

// max returns the max, which the peer has set unless that is 0, or the part of it that a request
// may fill.
func (l *limit) max(set int64, share float64) int64 {
	all := l.said.First
	if set > 0 {
		all = min(max(set, l.least), l.most)
	}
	return max(1, int64(share*float64(all)))
}

// say tells all replicas what the peer has said about the i-th key of the request, if that is
// anything, and returns the max that it has set by then.
func (c *Call) say(ctx context.Context, i int, said peerstate.Said) int64 {
	l := c.peer.limits[i]
	if said.Max > 0 {
		said.Max = min(max(said.Max, l.least), l.most)
	}
	known := bridge.LimiterOf(c.transport.limiter).Peer(ctx, l.rule.Limit(&c.keys[i]), &l.said, said)
	if c.maxes[i] = known.Max; i == 0 {
		c.paced = known.Paced
	}
	return known.Max
}

// follow has what a peer says about its limits set the max of the keys of a request. That of
// limits without a Most it lowers only while calls go on evenly after a hold: by then
// it has said that nothing remains although this side has counted less.
func (c *Call) follow(ctx context.Context, a *Answer, now time.Time) {
	paced := now.Before(c.paced)
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
	d, err := c.transport.limiter.Peek(context.WithoutCancel(ctx), l.rule.Limit(&c.keys[i]).WithMax(most))
	if err != nil || d.Blocked {
		return most
	}
	return d.Remaining
}
