package rateclient

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// An Answer is what a peer says about its limits, in one answer to a request.
type Answer struct {
	// Status is the answer's status of HTTP; 0 where there is none.
	Status int
	// Refused reports that the peer has refused the request because of a limit.
	Refused bool
	// HoldOff is for how long the peer wants no more requests, up to a year: what
	// Retry-After says or, without that, until there is quota again. 0: it has not said.
	HoldOff time.Duration
	// Quotas are what the peer says about its limits, 16 at most.
	Quotas []Quota
}

// A Quota is what a peer says about one of its limits.
type Quota struct {
	// Name is the peer's name of the limit, or empty.
	Name string
	// Unit is what is counted, as far as the peer says: "requests", "tokens",
	// "content-bytes" and others. It is never empty.
	Unit string
	// Limit is how much is admitted in a window; -1: unknown.
	Limit int64
	// Window is the time that Limit refers to; 0: unknown.
	Window time.Duration
	// Remaining is how much is left; -1: unknown.
	Remaining int64
	// Reset is the time until more is admitted; 0: unknown.
	Reset time.Duration

	gradual bool // Reset is when all of the quota is back, and some of it is sooner
}

// requests is the unit of quotas that name none.
const requests = "requests"

const (
	maxQuotas = 16
	// maxTime is the longest time that an answer can name.
	maxTime = 366 * 24 * time.Hour
)

// ReadAnswer returns what the status and the header of an answer that has arrived at now
// say. It never fails: what it does not understand says nothing. It knows
//
//   - Retry-After in seconds, with a fraction or not, and as a date; Retry-After-Ms;
//   - RateLimit and RateLimit-Policy as of drafts 7 to 11 of the IETF, and RateLimit-Limit,
//     -Remaining and -Reset as of drafts 0 to 6;
//   - X-RateLimit-Limit, -Remaining and -Reset, the last one in seconds from now, as a Unix
//     time in seconds or milliseconds, which differ by their magnitudes, as a date, or as a
//     duration like 6m0s; and these with a unit, as OpenAI sends them, or a window;
//   - Anthropic-Ratelimit-*, and X-Shopify-Shop-Api-Call-Limit.
//
// The status 429 is a refusal, 503 is one with a Retry-After, and 403 is with that or
// with nothing remaining. Points in time are taken as of the answer's Date, so it does
// not matter whether the peer's clock is right. A cached answer says nothing about
// quotas.
func ReadAnswer(status int, header http.Header, now time.Time) Answer {
	a := Answer{Status: status}
	r := reader{header: header, now: now}
	wait, said := r.retryAfter()
	if age := header["Age"]; len(age) == 0 || age[0] == "0" {
		a.Quotas = r.quotas()
	}
	spent, other := a.spent(false), a.spent(true)
	switch status {
	case http.StatusTooManyRequests:
		a.Refused = true
	case http.StatusServiceUnavailable:
		a.Refused = said && wait > 0
	case http.StatusForbidden:
		a.Refused = said && wait > 0 || spent > 0
	}
	switch {
	case a.Refused && wait > 0:
		a.HoldOff = wait
	case a.Refused && !said:
		a.HoldOff = max(spent, other)
	case !a.Refused:
		a.HoldOff = spent
	}
	return a
}

// spent returns the time until a quota of which nothing remains admits more: 0 if there is
// none. Of refused requests also those count of which it is not known what remains, and
// those that come back little by little.
func (a *Answer) spent(refused bool) (longest time.Duration) {
	for i := range a.Quotas {
		q := &a.Quotas[i]
		if q.Unit == "concurrent-requests" || q.Remaining > 0 {
			continue
		}
		if refused || q.Remaining == 0 && !q.gradual {
			longest = max(longest, q.Reset)
		}
	}
	return longest
}

// A reader reads the header of one answer.
type reader struct {
	header http.Header
	now    time.Time
	found  []Quota
}

// retryAfter returns the longest time that a Retry-After says, and whether one says any.
func (r *reader) retryAfter() (wait time.Duration, said bool) {
	for _, value := range r.header["Retry-After-Ms"] {
		if ms, ok := number(value); ok {
			wait, said = max(wait, duration(ms, time.Millisecond)), true
		}
	}
	if said {
		return wait, true // it is the exact one of the two
	}
	for _, value := range r.header["Retry-After"] {
		if seconds, ok := number(value); ok {
			wait, said = max(wait, duration(seconds, time.Second)), true
		} else if at, err := http.ParseTime(strings.TrimSpace(value)); err == nil {
			wait, said = max(wait, r.timeUntil(at)), true
		}
	}
	return wait, said
}

// families are the fields by which peers tell of one limit each, in the spelling of
// [http.CanonicalHeaderKey].
var families = []struct {
	limit, remaining, reset string
	unit                    string
	window                  time.Duration
	gradual                 bool
}{
	{"Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset", requests, 0, false},
	{"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", requests, 0, false},
	{"X-Rate-Limit-Limit", "X-Rate-Limit-Remaining", "X-Rate-Limit-Reset", requests, 0, false},
	{"X-Ratelimit-Limit-Requests", "X-Ratelimit-Remaining-Requests", "X-Ratelimit-Reset-Requests", requests, 0, true},
	{"X-Ratelimit-Limit-Tokens", "X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Reset-Tokens", "tokens", 0, true},
	{"X-Ratelimit-Limit-Second", "X-Ratelimit-Remaining-Second", "", requests, time.Second, false},
	{"X-Ratelimit-Limit-Minute", "X-Ratelimit-Remaining-Minute", "", requests, time.Minute, false},
	{"X-Ratelimit-Limit-Hour", "X-Ratelimit-Remaining-Hour", "", requests, time.Hour, false},
	{"X-Ratelimit-Limit-Day", "X-Ratelimit-Remaining-Day", "", requests, 24 * time.Hour, false},
	{"Anthropic-Ratelimit-Requests-Limit", "Anthropic-Ratelimit-Requests-Remaining", "Anthropic-Ratelimit-Requests-Reset", requests, time.Minute, true},
	{"Anthropic-Ratelimit-Tokens-Limit", "Anthropic-Ratelimit-Tokens-Remaining", "Anthropic-Ratelimit-Tokens-Reset", "tokens", time.Minute, true},
	{"Anthropic-Ratelimit-Input-Tokens-Limit", "Anthropic-Ratelimit-Input-Tokens-Remaining", "Anthropic-Ratelimit-Input-Tokens-Reset", "input-tokens", time.Minute, true},
	{"Anthropic-Ratelimit-Output-Tokens-Limit", "Anthropic-Ratelimit-Output-Tokens-Remaining", "Anthropic-Ratelimit-Output-Tokens-Reset", "output-tokens", time.Minute, true},
}

// quotas returns what the fields say about the peer's limits.
func (r *reader) quotas() []Quota {
	for _, m := range members(r.header["Ratelimit-Policy"]) {
		if q := m.policy(); q.Limit >= 0 {
			r.add(q)
		}
	}
	r.limits(members(r.header["Ratelimit"]))
	for i := range families {
		f := &families[i]
		q := Quota{Unit: f.unit, Limit: r.count(f.limit), Remaining: r.count(f.remaining), gradual: f.gradual}
		if q.Limit < 0 && q.Remaining < 0 && r.first(f.reset) == "" {
			continue
		}
		if q.Window = f.window; q.Window == 0 && q.Limit >= 0 {
			q.Window = windowOf(r.header[f.limit], q.Limit)
		}
		q.Reset = r.reset(r.first(f.reset))
		r.add(q)
	}
	if used, limit, ok := strings.Cut(r.first("X-Shopify-Shop-Api-Call-Limit"), "/"); ok {
		used, known := number(used)
		if limit, ok := number(limit); ok && known {
			r.add(Quota{Unit: requests, Limit: int64(limit), Remaining: max(0, int64(limit-used)), gradual: true})
		}
	}
	return r.found
}

func (r *reader) add(q Quota) {
	if len(r.found) < maxQuotas {
		r.found = append(r.found, q)
	}
}

// limits adds what the members of RateLimit say to the policies of their names. Draft 7
// has a dictionary in which each member is one number of the one limit.
func (r *reader) limits(limits []member) {
	one := Quota{Unit: requests, Limit: -1, Remaining: -1}
	for _, m := range limits {
		if m.dictionary {
			switch m.name {
			case "limit":
				one.Limit = m.value
			case "remaining":
				one.Remaining = m.value
			case "reset":
				one.Reset = duration(float64(m.value), time.Second)
			}
			continue
		}
		reset := duration(float64(m.t), time.Second)
		if known := r.policy(m.name); known != nil {
			known.Remaining, known.Reset = m.r, reset
		} else if m.r >= 0 {
			r.add(Quota{Name: m.name, Unit: requests, Limit: -1, Remaining: m.r, Reset: reset})
		}
	}
	if one.Limit < 0 && one.Remaining < 0 {
		return
	}
	for i := range r.found {
		if q := &r.found[i]; q.Limit == one.Limit {
			q.Remaining, q.Reset = one.Remaining, one.Reset
			return
		}
	}
	r.add(one)
}

// policy returns the quota of a name of which it is not yet known what remains, or nil.
func (r *reader) policy(name string) *Quota {
	for i := range r.found {
		if q := &r.found[i]; q.Name == name && q.Remaining < 0 {
			return q
		}
	}
	return nil
}

// windowOf returns the window of the policy with a limit in a RateLimit-Limit of drafts 3
// to 6, as in "100, 100;w=60", or 0.
func windowOf(values []string, limit int64) time.Duration {
	for _, m := range members(values) {
		if m.value == limit && m.w > 0 {
			return duration(float64(m.w), time.Second)
		}
	}
	return 0
}

func (r *reader) first(field string) string {
	if values := r.header[field]; field != "" && len(values) > 0 {
		return values[0]
	}
	return ""
}

// count returns the number that a field begins with, or -1.
func (r *reader) count(field string) int64 {
	value, _, _ := strings.Cut(r.first(field), ",")
	value, _, _ = strings.Cut(value, ";")
	if n, ok := number(value); ok && n < 1e15 {
		return int64(n)
	}
	return -1
}

// reset returns the time until a reset: 0 if it is over or unknown.
func (r *reader) reset(value string) time.Duration {
	value = strings.TrimSpace(value)
	if value == "" {
		return 0
	}
	if n, ok := number(value); ok {
		switch {
		case n < 1e9: // seconds from now; as a Unix time it would be before 2001
			return duration(n, time.Second)
		case n < 1e11:
			return r.timeUntil(time.UnixMilli(int64(n * 1000)))
		case n < 1e14:
			return r.timeUntil(time.UnixMilli(int64(n)))
		}
		return 0
	}
	if d, err := time.ParseDuration(value); err == nil {
		return min(max(0, d), maxTime)
	}
	if at, err := http.ParseTime(value); err == nil {
		return r.timeUntil(at)
	}
	if at, err := time.Parse(time.RFC3339, value); err == nil {
		return r.timeUntil(at)
	}
	return 0
}

// timeUntil returns the time until a moment by the peer's clock, if the answer has that, and
// 0 if it is over.
func (r *reader) timeUntil(at time.Time) time.Duration {
	now := r.now
	if date, err := http.ParseTime(r.first("Date")); err == nil {
		now = date
	}
	return min(max(0, at.Sub(now)), maxTime)
}

// number reads a decimal number that is not negative.
func number(text string) (float64, bool) {
	text = strings.TrimSpace(text)
	if text == "" || len(text) > 30 || strings.Trim(text, "0123456789.") != "" {
		return 0, false // ParseFloat would take "1e9", "0x1p3", "inf" and "nan"
	}
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil
}

// duration returns n units, up to maxTime. It is 0 for a negative n.
func duration(n float64, unit time.Duration) time.Duration {
	if n >= float64(maxTime/unit) {
		return maxTime
	}
	return time.Duration(max(0, n) * float64(unit))
}
