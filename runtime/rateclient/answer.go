package rateclient

import (
	"net/http"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime/rateclient/internal/limitfields"
)

// An Answer is what a peer says about its limits, in one answer to a request.
type Answer struct {
	// Status is the answer's status of HTTP or, up to 16, the code of RPC; 0 where there is none.
	Status int
	// Message is the text of an RPC's status, which is to [Peer.Body] what a body is.
	Message string
	// Refused reports that the peer has refused the request because of a limit.
	Refused bool
	// HoldOff is for how long the peer wants no more requests, up to 366 days: what
	// Retry-After says or, without that, until there is quota again. 0: it has not said.
	HoldOff time.Duration
	// Quotas are what the peer says about its limits, 16 at most.
	Quotas []Quota
	// Contradicts reports that the peer has served the request, and named a limit of 0 that
	// it is counted by. Such a quota says nothing, and is left out.
	Contradicts bool
}

// A Quota is what a peer says about one of its limits.
type Quota struct {
	// Name is the peer's name of the limit, or empty.
	Name string
	// Unit is what is counted, as far as the peer says: "requests", "tokens",
	// "content-bytes" and others. It is never empty.
	Unit string
	// Limit is how much is admitted in a window, below 1e15; -1: unknown.
	Limit int64
	// Window is the time that Limit refers to; 0: unknown.
	Window time.Duration
	// Remaining is how much is left; -1: unknown.
	Remaining int64
	// Reset is the time until more is admitted; 0: unknown.
	Reset time.Duration

	gradual bool // Reset is when all of the quota is back, and some of it is sooner
}

// concurrent is the unit of limits on requests in flight, which no time resets.
const concurrent = "concurrent-requests"

const (
	maxQuotas = limitfields.MaxQuotas
	maxTime   = limitfields.MaxTime // the longest that an answer can name
)

// refusals are the statuses that refuse a request, if [Peer.Refusals] names no others.
var refusals = []int{http.StatusForbidden, http.StatusTeapot, http.StatusTooManyRequests, http.StatusServiceUnavailable, 529}

// isSpent reports whether nothing remains until a time that is known.
func (q Quota) isSpent() bool {
	return q.Remaining == 0 && q.Reset > 0 && q.Limit != 0 && q.Unit != concurrent
}

// ReadAnswer returns what the status and the header of an answer that has arrived at now
// say. It never fails: what it does not understand says nothing. It knows
//
//   - Retry-After; Retry-After-Ms and X-Ms-Retry-After-Ms, which are exact where both are;
//   - RateLimit and RateLimit-Policy as of drafts 7 to 11 of the IETF, and as is proposed for
//     the next, where RateLimit has a and w in place of r and t; RateLimit-Limit, -Remaining
//     and -Reset as of drafts 0 to 6;
//   - X-RateLimit-Limit, -Remaining and -Reset, also with a unit, as OpenAI and Linear send
//     them, or a window, as Kong and Contentful do, or with X-RateLimit-Period;
//   - the fields of Anthropic, Brevo, Bybit, Discord, HubSpot, Sentry, Shopify, X and Zendesk.
//
// A time is a number of seconds, with a fraction or not; a Unix time in seconds, milliseconds,
// microseconds or nanoseconds, which differ by their magnitudes; a duration such as 6m0s, PT6M or 6
// minutes; or a date by RFC 9110 or RFC 3339. Of several numbers in Retry-After the longest holds.
//
// The status 429 is a refusal. 403, 418, 503 and 529 are if the answer also says when to come
// back, or that nothing remains; see [Peer.Refusals]. Points in time are taken as of the
// answer's Date, so it does not matter whether the peer's clock is right. A cached answer says
// nothing about quotas.
func ReadAnswer(status int, header http.Header, now time.Time) Answer {
	return readAnswer(status, header, now, refusals)
}

func readAnswer(status int, header http.Header, now time.Time, refusals []int) Answer {
	a := Answer{Status: status}
	wait, said, quotas := limitfields.Read(header, now)
	for _, q := range quotas {
		a.Quotas = append(a.Quotas, Quota{q.Name, q.Unit, q.Limit, q.Window, q.Remaining, q.Reset, q.Gradual})
	}
	spent, other := a.spent(false), a.spent(true)
	if slices.Contains(refusals, status) {
		a.Refused = status == http.StatusTooManyRequests || wait > 0 || slices.ContainsFunc(a.Quotas, Quota.isSpent) ||
			len(header["X-Envoy-Ratelimited"]) > 0
	}
	if a.Refused && wait > 0 {
		a.HoldOff = wait
	} else if a.Refused && !said {
		a.HoldOff = max(spent, other)
	} else if !a.Refused {
		a.HoldOff = spent
		a.Quotas = slices.DeleteFunc(a.Quotas, func(q Quota) bool {
			a.Contradicts = a.Contradicts || q.Limit == 0 && status < 400
			return q.Limit == 0
		})
	}
	return a
}

// spent returns the time until a quota of which nothing remains admits more: 0 if there is
// none. Of refused requests also those count of which it is not known what remains, and
// those that come back little by little. A limit of 0 is none but where the peer refuses by 429.
func (a *Answer) spent(refused bool) (longest time.Duration) {
	for i := range a.Quotas {
		q := &a.Quotas[i]
		if q.Unit == concurrent || q.Remaining > 0 || q.Limit == 0 && a.Status != http.StatusTooManyRequests {
			continue
		}
		if refused || q.Remaining == 0 && !q.gradual {
			longest = max(longest, q.Reset)
		}
	}
	return longest
}
