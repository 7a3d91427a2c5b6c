package rateclient

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"
)

// A reader reads the header of one answer.
type reader struct {
	header http.Header
	now    time.Time
	found  []Quota
}

// A family is the fields by which peers tell of one limit, in the spelling of
// [http.CanonicalHeaderKey].
type family struct {
	limit, remaining, reset string
	period                  string // the field that has the window, or empty
	unit                    string
	window                  time.Duration
	gradual                 bool
}

// families are those that are known.
var families = slices.Concat(
	[]family{
		{"Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset", "", requests, 0, false},
		{"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", "X-Ratelimit-Period", requests, 0, false},
		{"X-Rate-Limit-Limit", "X-Rate-Limit-Remaining", "X-Rate-Limit-Reset", "", requests, 0, false},
		{"X-Sentry-Rate-Limit-Limit", "X-Sentry-Rate-Limit-Remaining", "X-Sentry-Rate-Limit-Reset", "", requests, 0, false},
		{"X-App-Limit-24hour-Limit", "X-App-Limit-24hour-Remaining", "X-App-Limit-24hour-Reset", "", requests, 24 * time.Hour, false},
		{"X-User-Limit-24hour-Limit", "X-User-Limit-24hour-Remaining", "X-User-Limit-24hour-Reset", "", requests, 24 * time.Hour, false},
		{"X-Hubspot-Ratelimit-Daily", "X-Hubspot-Ratelimit-Daily-Remaining", "", "", requests, 24 * time.Hour, false},
		{"X-Hubspot-Ratelimit-Max", "X-Hubspot-Ratelimit-Remaining", "", "X-Hubspot-Ratelimit-Interval-Milliseconds", requests, 0, false},
		{"X-Ratelimit-Limit-Requests", "X-Ratelimit-Remaining-Requests", "X-Ratelimit-Reset-Requests", "", requests, 0, true},
		{"X-Ratelimit-Limit-Tokens", "X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Reset-Tokens", "", "tokens", 0, true},
		{"X-Ratelimit-Requests-Limit", "X-Ratelimit-Requests-Remaining", "X-Ratelimit-Requests-Reset", "", requests, 0, true},
		{"X-Ratelimit-Complexity-Limit", "X-Ratelimit-Complexity-Remaining", "X-Ratelimit-Complexity-Reset", "", "complexity", 0, true},
	},
	windowed("X-Ratelimit-Limit-%", "X-Ratelimit-Remaining-%", "Second", "Minute", "Hour", "Day"),
	windowed("X-Contentful-Ratelimit-%-Limit", "X-Contentful-Ratelimit-%-Remaining", "Second", "Hour"),
	anthropic("Requests", requests), anthropic("Tokens", "tokens"), anthropic("Input-Tokens", "input-tokens"), anthropic("Output-Tokens", "output-tokens"),
)

// windows are the windows that fields name in words.
var windows = map[string]time.Duration{"Second": time.Second, "Minute": time.Minute, "Hour": time.Hour, "Day": 24 * time.Hour}

// windowed returns fields whose names have the window in place of %.
func windowed(limit, remaining string, names ...string) (all []family) {
	for _, w := range names {
		all = append(all, family{strings.Replace(limit, "%", w, 1), strings.Replace(remaining, "%", w, 1), "", "", requests, windows[w], false})
	}
	return all
}

func anthropic(what, unit string) []family {
	name := "Anthropic-Ratelimit-" + what
	return []family{{name + "-Limit", name + "-Remaining", name + "-Reset", "", unit, time.Minute, true}}
}

// quotas returns what the fields say about the peer's limits.
func (r *reader) quotas() []Quota {
	for _, m := range members(r.lines("Ratelimit-Policy")) {
		if q := m.policy(); q.Limit >= 0 {
			r.add(q)
		}
	}
	r.limits(members(r.lines("Ratelimit")))
	for i := range families {
		r.family(&families[i])
	}
	if used, limit, ok := strings.Cut(r.first("X-Shopify-Shop-Api-Call-Limit"), "/"); ok {
		used, known := number(used)
		if limit, ok := number(limit); ok && known && limit < maxCount {
			r.add(Quota{Unit: requests, Limit: int64(limit), Remaining: max(0, int64(limit-used)), gradual: true})
		}
	}
	return r.found
}

// family adds what the fields of a family say, to a policy without a name if there is one of
// the same limit, as in drafts 3 to 6.
func (r *reader) family(f *family) {
	reset := r.first(f.reset)
	if f.reset == "X-Ratelimit-Reset" { // Discord's other one is in seconds, and needs no clock
		reset = cmp.Or(r.first("X-Ratelimit-Reset-After"), reset)
	}
	q := Quota{Unit: f.unit, Limit: r.count(f.limit), Remaining: r.count(f.remaining), Window: f.window, gradual: f.gradual}
	if q.Limit < 0 && q.Remaining < 0 && reset == "" {
		return
	}
	var known *Quota
	if q.Limit >= 0 {
		if q.Window == 0 {
			q.Window = r.window(f, q.Limit)
		}
		if known = r.policy("", q.Limit); known != nil && (known.Unit != q.Unit || q.Window != 0 && known.Window != q.Window) {
			known = nil
		}
	}
	if known == nil {
		q.Reset = r.reset(reset)
		r.add(q)
		return
	}
	known.Remaining, known.Reset = q.Remaining, r.reset(reset)
}

// window returns the window of a limit: of its field of that, or of the policy with that limit
// in its field, as in "100, 100;w=60". 0: unknown.
func (r *reader) window(f *family, limit int64) time.Duration {
	if value := strings.TrimSpace(r.first(f.period)); value != "" {
		unit := time.Second
		if strings.HasSuffix(f.period, "-Milliseconds") {
			unit = time.Millisecond
		}
		if n, ok := number(value); ok {
			return duration(n, unit)
		}
		if d, ok := span(value); ok {
			return d
		}
	}
	for _, m := range members(r.lines(f.limit)) {
		if m.value == limit && m.w > 0 {
			return duration(float64(m.w), time.Second)
		}
	}
	return 0
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
		left, effective := m.r, m.t
		if left < 0 {
			left, effective = m.a, m.w
		}
		if left < 0 {
			continue // it does not say what the time is for
		}
		reset := duration(float64(effective), time.Second)
		if known := r.policy(m.name, -1); known != nil {
			known.Remaining, known.Reset = left, reset
		} else {
			r.add(Quota{Name: m.name, Unit: requests, Limit: -1, Remaining: left, Reset: reset})
		}
	}
	if one.Limit >= 0 {
		if known := r.policy("", one.Limit); known != nil {
			known.Remaining, known.Reset = one.Remaining, one.Reset
			return
		}
	}
	if one.Limit >= 0 || one.Remaining >= 0 {
		r.add(one)
	}
}

// policy returns the quota of a name, and of a limit unless that is -1, of which it is not yet
// known what remains, or nil.
func (r *reader) policy(name string, limit int64) *Quota {
	for i := range r.found {
		if q := &r.found[i]; q.Name == name && q.Remaining < 0 && q.Reset == 0 && (limit < 0 || q.Limit == limit) {
			return q
		}
	}
	return nil
}

// lines returns the lines of a field, as far as they are read.
func (r *reader) lines(field string) []string {
	lines := r.header[field]
	return lines[:min(len(lines), maxList)]
}

func (r *reader) first(field string) string {
	if values := r.header[field]; field != "" && len(values) > 0 {
		return values[0]
	}
	return ""
}

// maxCount is above all numbers that fields can have: RFC 9651, section 3.3.1.
const maxCount = 1e15

// count returns the number that a field begins with, or -1.
func (r *reader) count(field string) int64 {
	value, _, _ := strings.Cut(r.first(field), ",")
	value, _, _ = strings.Cut(value, ";")
	if n, ok := number(value); ok && n < maxCount {
		return int64(n)
	}
	return -1
}
