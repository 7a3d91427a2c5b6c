package rateclient

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/rategen/rategen/internal/peerstate"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// A Call is a request that was admitted. It is nil for one that no pattern fits.
type Call struct {
	transport *Transport
	peer      *peer
	deadline  time.Time // for its turn
	charged   time.Time // not after that
	keys      [rule.MaxLimits - 1]runtime.Key
	name      string // of the first key
	cost      int64  // of the first limit
	lane      lane
	maxes     [rule.MaxLimits - 1]int64 // that the peer has set; 0: none
	paceEnd   time.Time                 // until when calls go on evenly
	settle    *runtime.Decision         // for Settle; nil if nobody can call it
	least     string                    // the rule with the least left when it was charged
	left      int64                     // of that
}

type callKey struct{}

// WithCall returns a context for one request, and its call, which is there when a
// [Transport] has admitted it: to [Call.Settle] it. If the request is sent again, it is the
// last one's.
func WithCall(ctx context.Context) (context.Context, *Call) {
	c := &Call{settle: new(runtime.Decision)}
	return context.WithValue(ctx, callKey{}, c), c
}

// Answered obeys what the peer has answered. It is called once, when the answer begins.
func (c *Call) Answered(ctx context.Context, a Answer) {
	if c != nil && c.transport != nil {
		c.readBody(&a, []byte(a.Message))
		c.obey(ctx, a, time.Now())
	}
}

// Settle makes what the request really cost its charge, for instance when a model has said
// how many tokens it has used. There is a cost for each limit of the peer, in their order;
// below 0, or missing: what was charged stays. Settle returns at once, and counts once. See
// [runtime.Limiter.SettleLater]. It is for calls of [WithCall], and does nothing if the
// request was not admitted.
func (c *Call) Settle(ctx context.Context, costs ...int64) {
	if c == nil || c.settle == nil || c.transport == nil {
		return
	}
	d := *c.settle
	*c.settle = runtime.Decision{} // which has charged nothing
	c.transport.limiter.SettleLater(ctx, d, costs[:min(len(costs), len(c.peer.limits))]...)
}

// take charges the limits of a request that has waited for a time. If again is true it may wait for
// longer, and nobody was told that the limits have no room.
func (c *Call) take(r *http.Request, waited time.Duration) (d runtime.Decision, again bool, err error) {
	var all [rule.MaxLimits]runtime.Limit
	limits := all[:0]
	for i := range c.peer.limits {
		limits = append(limits, c.limit(r, i))
	}
	c.charged = time.Now()
	l := c.peer.limits[0]
	if c.charged.Before(c.paceEnd) {
		pace := l.pace.Limit(&c.keys[0]).WithCost(min(max(c.cost, 0), l.pace.Burst))
		if l.Most > 0 || c.maxes[0] > 0 {
			pace = pace.WithMax(l.max(c.maxes[0], 1))
		}
		limits = append(limits, pace)
	}
	again, err = c.transport.engine.Try(r.Context(), &d, waited, func() bool {
		d.RetryAfter = c.untilTurn(&d, d.RetryAfter)
		return d.RetryAfter <= time.Until(c.deadline)
	}, limits...)
	c.least, c.left = d.Rule, d.Remaining
	if !again && err == nil && c.settle != nil {
		*c.settle = d
	}
	if d.Blocked && d.Source == rule.SourceStore { // perhaps another replica, or somebody else, has begun the hold
		c.say(r.Context(), 0, peerstate.Said{Evenly: l.evenly(d.RetryAfter)})
	}
	if limited := (*runtime.LimitedError)(nil); errors.As(err, &limited) {
		limited.RetryAfter = c.untilTurn(&d, limited.RetryAfter)
	}
	return d, again, err
}

// untilTurn returns the time until a refused request may be sent: at the latest when calls need not go
// on evenly any more, if it is the pace that has refused it.
func (c *Call) untilTurn(d *runtime.Decision, wait time.Duration) time.Duration {
	if d.Rule != c.peer.limits[0].pace.Name {
		return wait
	}
	return min(wait, max(time.Until(c.paceEnd), time.Microsecond))
}

// limit returns the i-th limit of the request as it is now.
func (c *Call) limit(r *http.Request, i int) runtime.Limit {
	l := c.peer.limits[i]
	limit := l.rule.Limit(&c.keys[i])
	if l.rule.Headroom != 0 {
		var share runtime.Key
		weight := l.Tenant(r, &share)
		limit = limit.WithShare(&share, weight)
	}
	cost := int64(1)
	if l.Cost != nil {
		cost = l.Cost(r)
		limit = limit.WithCost(cost)
	}
	if i == 0 {
		c.cost = cost
	}
	said := c.say(r.Context(), i, peerstate.Said{})
	if l.Most > 0 || l.Share != nil || said > 0 {
		limit = limit.WithMax(l.max(said, l.share(r)))
	}
	return limit
}

// rule returns the rule of the first limit, which answers hold back and calls wait by.
func (c *Call) rule() *runtime.Rule { return &c.peer.limits[0].rule }

// accounts returns those of the first limit.
func (c *Call) accounts() *accounts { return &c.peer.limits[0].accounts }
