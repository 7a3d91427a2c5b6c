package rateclient

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/report"
	"github.com/rategen/rategen/runtime/rule"
)

// A Peer is a service, or a part of one, with limits of its own.
type Peer struct {
	// Pattern says which requests the peer serves, in the way of [http.ServeMux]:
	// "api.example.com/", "POST api.example.com/v1/charges". Of several patterns that fit
	// the most specific one holds, and requests that none fits are sent as they are.
	// Hosts are written in lower case, without a port and without wildcards. A service of gRPC
	// or Connect ends in a slash: "/shop.v1.Orders/". A pattern that nothing fits is an error.
	Pattern string
	// Limits are charged together: all or none. What the peer answers holds back the key of
	// the first one, so that should be the peer's key: the credential, say. There are from 1
	// to [rule.MaxLimits] - 1.
	Limits []PeerLimit
	// Wait is for how long a request may wait for its turn. 0: it does not. The wait ends when the
	// limiter is closed.
	Wait time.Duration
	// MaxHold is for how long one answer can hold back calls; 0 stands for an hour.
	MaxHold time.Duration
	// Unsaid is for how long a refusal holds back calls that does not say so; 0 stands for
	// a second. It doubles with each such refusal after the one before was over.
	Unsaid time.Duration
	// Retries is how many times a request that the peer has refused is sent again. Only
	// those are that can be: without a body or with GetBody, and of a method that is
	// idempotent or with an Idempotency-Key. They wait as others do, within Wait in all.
	Retries int
	// Refusals are the statuses, from 300 to 999, by which the peer refuses a request because of
	// a limit. Of these 429 does by itself, and others do if the answer also says when to come
	// back, or that nothing remains. nil stands for 403, 418, 429, 503 and 529.
	Refusals []int
	// Body reads what the bodies of answers say, such as [GoogleBody] and [TelegramBody].
	Body Body
}

// A PeerLimit is one limit of a peer.
type PeerLimit struct {
	// Rule counts requests. It has no Wait, see [Peer.Wait], no Block, no Lease, no Period and no
	// Mode, and is no [runtime.Concurrency]. It is [runtime.Rule.Outgoing] in any case.
	//
	// A [runtime.SlidingLog], the default, keeps to every peer that admits Max at once, and in no
	// window more: it counts by a rolling window or a fixed one, or a bucket with a burst of Max.
	// A peer whose bucket has a smaller burst refuses some of its requests: for it the rule is a
	// [runtime.TokenBucket] with that Burst.
	Rule runtime.Rule
	// Key adds the parts of the key, see [Host] and [Credential]. nil: one limit for all.
	Key func(r *http.Request, key *runtime.Key)
	// Cost is how many events a request counts as; nil: 1. Like Key it must not read the
	// body, and is called again for each try. A request whose cost is below 0, or above
	// [rule.MaxLogCost] where the rule is a [runtime.SlidingLog], fails with
	// [runtime.ErrInvalidLimit], and one that no room would be enough for with a
	// [*runtime.LimitedError] that says [runtime.Never]. So count tokens or bytes with a
	// [runtime.SlidingCounter] or a [runtime.TokenBucket].
	//
	// If Key, Cost, Share or Tenant panics the request is not sent, and fails. The panic is logged.
	Cost func(r *http.Request) int64
	// Share is which part of the max a request may fill, from 0 to 1; nil: all of it. With
	// a smaller one for less important requests some of the limit is left for others, and
	// these do not wait behind them. It is for limits that count, not for buckets.
	Share func(r *http.Request) float64
	// Tenant adds the parts of the share that a request is of, and returns its weight, see
	// [runtime.Limit.WithShare], of a Rule with a Headroom. Requests of each tenant wait in a line of
	// their own, so that one who floods the peer holds back no other. It is called as Key is.
	Tenant func(r *http.Request, share *runtime.Key) (weight int64)
	// Margin is by how much the limit's window is longer than the rule's: by as much as
	// delays on the way to the peer differ. Two requests that were charged a window apart
	// arrive that much closer. Of a bucket the burst is smaller by what drains in that time. 0
	// stands for a 64th of the window, or ten seconds if that is less. Below 0: none.
	Margin time.Duration
	// Least and Most, if Most is above 0, let the peer set the max within these bounds, by an
	// answer that names a limit and, as its window, the rule's. A lower one that it tells of
	// holds at once, and a higher one comes by a tenth for each window. All replicas learn of
	// it within a second, and one that starts with its first request. A hundred answers
	// in a row that name no such limit are a finding, see [runtime.Limiter.Findings].
	//
	// Without Most a peer that names a limit for the rule's window, and says that nothing remains
	// although less was counted here, lowers the max in the same way, and it rises as the
	// peer says. Once it has named no such limit for two windows and a minute the rule's holds.
	Least, Most int64
	// Unit is the unit of the quotas that set the max. Empty stands for "requests".
	Unit string
}

// Host is a Key that limits each host by itself.
func Host(r *http.Request, key *runtime.Key) { key.AddString(hostOf(r)) }

// Credential is a Key that limits each credential by itself: the fields Authorization,
// X-Api-Key and Api-Key. It adds a hash of them, so that Redis holds no secret.
func Credential(r *http.Request, key *runtime.Key) {
	h := sha256.New()
	for _, field := range [...]string{"Authorization", "X-Api-Key", "Api-Key"} {
		fmt.Fprintf(h, "%q", r.Header[field])
	}
	key.AddString(hex.EncodeToString(h.Sum(nil)[:16]))
}

// hostOf returns the host that a request is for, in lower case, without its port and
// the dot at its end.
func hostOf(r *http.Request) string {
	if r.Host == "" || r.Host == r.URL.Host {
		return strings.ToLower(strings.TrimSuffix(r.URL.Hostname(), "."))
	}
	u := *r.URL
	u.Host = r.Host
	return strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
}

// A peer is a Peer that is ready for use.
type peer struct {
	Peer
	limits []*limit
	log    report.Throttle
}

// ServeHTTP makes a peer a handler, which [http.ServeMux] finds by patterns.
func (*peer) ServeHTTP(http.ResponseWriter, *http.Request) {}

func newPeer(p Peer) (*peer, error) {
	if err := checkPattern(p.Pattern); err != nil {
		return nil, fmt.Errorf("no request fits the pattern: %w", err)
	}
	if len(p.Limits) == 0 || len(p.Limits) >= rule.MaxLimits {
		return nil, fmt.Errorf("it has %d limits, and from 1 to %d are possible", len(p.Limits), rule.MaxLimits-1)
	}
	if p.Wait < 0 || p.MaxHold < 0 || p.Unsaid < 0 || p.Retries < 0 {
		return nil, errors.New("a negative Wait, MaxHold, Unsaid or Retries")
	}
	if p.MaxHold > rule.MaxWindow {
		return nil, fmt.Errorf("MaxHold %v is above 366 days", p.MaxHold)
	}
	if p.Refusals == nil {
		p.Refusals = refusals
	}
	if i := slices.IndexFunc(p.Refusals, func(status int) bool { return status < 300 || status > 999 }); i >= 0 {
		return nil, fmt.Errorf("status %d cannot refuse a request: leave it out", p.Refusals[i])
	}
	if (p.Body.Read == nil) != (len(p.Body.Statuses) == 0) {
		return nil, errors.New("its Body has no Read or no Statuses: set both")
	}
	p.MaxHold, p.Unsaid = cmp.Or(p.MaxHold, time.Hour), cmp.Or(p.Unsaid, time.Second)
	ready := &peer{Peer: p}
	for i := range p.Limits {
		l, err := newLimit(&p.Limits[i])
		if err != nil {
			return nil, err
		}
		ready.limits = append(ready.limits, l)
	}
	return ready, nil
}
