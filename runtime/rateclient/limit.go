package rateclient

import (
	"cmp"
	"math"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/internal/peerstate"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rateclient/internal/limitfields"
	"github.com/rategen/rategen/runtime/rule"
)

const (
	// marginShare is the share of a window that a margin has.
	marginShare = 64
	// longMargin is the longest that nobody has set: later than that no request arrives but by
	// mishap.
	longMargin = 10 * time.Second
)

// A limit is a PeerLimit that is ready for use.
type limit struct {
	PeerLimit
	rule     runtime.Rule // with the margin
	pace     runtime.Rule // admits the same, but evenly
	said     peerstate.Limit
	accounts accounts
	least    int64 // the bounds of the peer's max
	most     int64

	unnamed atomic.Int64 // answers in a row that name no limit, though the peer may set the max
}

func newLimit(l *PeerLimit) (*limit, error) {
	if err := checkRule(l); err != nil {
		return nil, err
	}
	r := l.Rule
	ready := &limit{PeerLimit: *l, least: l.Least, most: l.Most}
	ready.Unit = cmp.Or(l.Unit, limitfields.Requests)
	if l.Most == 0 {
		ready.least, ready.most = 1, r.Max
	}
	ready.accounts.lifetime = 2*r.Window + time.Minute
	ready.said = peerstate.Limit{First: min(r.Max, ready.most), Window: r.Window, Life: ready.accounts.lifetime}
	r.Hold, r.Outgoing = true, true
	margin := cmp.Or(l.Margin, min(r.Window/marginShare, longMargin))
	r.Window = min(r.Window+max(0, margin), rule.MaxWindow).Truncate(time.Microsecond)
	margin = r.Window - l.Rule.Window
	bucket := algorithm.RowOf(r.Algorithm).Is(algorithm.Drains)
	if bucket && margin > 0 && (r.Burst > 0 || l.Most == 0) { // else the burst is what the peer sets
		// The peer may receive the burst and what drains in the margin at once.
		r.Burst = max(1, cmp.Or(r.Burst, r.Max)-int64(math.Ceil(float64(r.Max)*margin.Seconds()/l.Rule.Window.Seconds())))
	}
	rule.Engine.FitHeadroom(&r)
	ready.rule = r
	ready.pace = runtime.Rule{
		Name: r.Name + " after a hold", Algorithm: runtime.TokenBucket, Window: r.Window, Max: r.Max,
		Burst: max(1, r.Max/marginShare), Mode: r.Mode, Fail: r.Fail, Message: r.Message, Outgoing: true,
	}
	if err := ready.pace.Check(); err != nil {
		return nil, err
	}
	return ready, nil
}

// share returns which part of the limit a request may fill.
func (l *limit) share(r *http.Request) float64 {
	if l.Share == nil {
		return 1
	}
	if share := l.Share(r); share > 0 { // NaN is not
		return min(share, 1)
	}
	return 0
}

// all returns the limit for a key, whoever a request is of: if tenants divide it, of one that has used nothing.
func (l *limit) all(key *runtime.Key) runtime.Limit {
	if l.rule.Headroom != 0 {
		return l.rule.Limit(key).WithShare(nil, 1)
	}
	return l.rule.Limit(key)
}

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

// evenly returns for how long calls do not go on all at once when a hold begins: until it ends,
// and for a window after it, but not for much longer than calls have gathered.
func (l *limit) evenly(hold time.Duration) time.Duration {
	return hold + min(l.rule.Window, max(hold, time.Minute))
}
