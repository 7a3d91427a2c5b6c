package limitfields

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"
)

// A reader reads the fields of one answer.
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
	Gradual                 bool
}

// families are those that are known.
var families = slices.Concat(
	[]family{
		{"Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset", "", Requests, 0, false},
		{"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", "X-Ratelimit-Period", Requests, 0, false},
		{"X-Rate-Limit-Limit", "X-Rate-Limit-Remaining", "X-Rate-Limit-Reset", "", Requests, 0, false},
		{"X-Sib-Ratelimit-Limit", "X-Sib-Ratelimit-Remaining", "X-Sib-Ratelimit-Reset", "", Requests, 0, false},
		{"X-Bapi-Limit", "X-Bapi-Limit-Status", "X-Bapi-Limit-Reset-Timestamp", "", Requests, 0, false},
		{"X-Sentry-Rate-Limit-Limit", "X-Sentry-Rate-Limit-Remaining", "X-Sentry-Rate-Limit-Reset", "", Requests, 0, false},
		{"X-App-Limit-24hour-Limit", "X-App-Limit-24hour-Remaining", "X-App-Limit-24hour-Reset", "", Requests, 24 * time.Hour, false},
		{"X-User-Limit-24hour-Limit", "X-User-Limit-24hour-Remaining", "X-User-Limit-24hour-Reset", "", Requests, 24 * time.Hour, false},
		{"X-Hubspot-Ratelimit-Daily", "X-Hubspot-Ratelimit-Daily-Remaining", "", "", Requests, 24 * time.Hour, false},
		{"X-Hubspot-Ratelimit-Max", "X-Hubspot-Ratelimit-Remaining", "", "X-Hubspot-Ratelimit-Interval-Milliseconds", Requests, 0, false},
		{"X-Ratelimit-Limit-Requests", "X-Ratelimit-Remaining-Requests", "X-Ratelimit-Reset-Requests", "", Requests, 0, true},
		{"X-Ratelimit-Limit-Tokens", "X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Reset-Tokens", "", "tokens", 0, true},
		{"X-Ratelimit-Requests-Limit", "X-Ratelimit-Requests-Remaining", "X-Ratelimit-Requests-Reset", "", Requests, 0, true},
		{"X-Ratelimit-Complexity-Limit", "X-Ratelimit-Complexity-Remaining", "X-Ratelimit-Complexity-Reset", "", "complexity", 0, true},
	},
	windowed("X-Ratelimit-Limit-%", "X-Ratelimit-Remaining-%", "Second", "Minute", "Hour", "Day"),
	windowed("X-Contentful-Ratelimit-%-Limit", "X-Contentful-Ratelimit-%-Remaining", "Second", "Hour"),
	anthropic("Requests", Requests), anthropic("Tokens", "tokens"), anthropic("Input-Tokens", "input-tokens"), anthropic("Output-Tokens", "output-tokens"),
)

// windows are the windows that fields name in words.
var windows = map[string]time.Duration{"Second": time.Second, "Minute": time.Minute, "Hour": time.Hour, "Day": 24 * time.Hour}

// windowed returns fields whose names have the window in place of %.
func windowed(limit, remaining string, names ...string) (all []family) {
	for _, w := range names {
		all = append(all, family{strings.Replace(limit, "%", w, 1), strings.Replace(remaining, "%", w, 1), "", "", Requests, windows[w], false})
	}
	return all
}

func anthropic(what, unit string) []family {
	name := "Anthropic-Ratelimit-" + what
	return []family{{name + "-Limit", name + "-Remaining", name + "-Reset", "", unit, time.Minute, true}}
}

// quotas returns what the fields say about the peer's limits.
func (r *reader) quotas() []Quota {
	for _, m := range r.members("Ratelimit-Policy") {
		if q := policyOf(&m); q.Limit >= 0 {
			r.add(q)
		}
	}
	r.limits(r.members("Ratelimit"))
	for i := range families {
		r.family(&families[i])
	}
	if used, limit, ok := strings.Cut(r.first("X-Shopify-Shop-Api-Call-Limit"), "/"); ok {
		used, known := Number(used)
		if limit, ok := Number(limit); ok && known && limit < MaxCount {
			r.add(Quota{Unit: Requests, Limit: int64(limit), Remaining: max(0, int64(limit-used)), Gradual: true})
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
	q := Quota{Unit: f.unit, Limit: r.count(f.limit), Remaining: r.count(f.remaining), Window: f.window, Gradual: f.Gradual}
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
		if n, ok := Number(value); ok {
			return Duration(n, unit)
		}
		if d, ok := span(value); ok {
			return d
		}
	}
	for _, m := range r.members(f.limit) {
		if w := m.number("w", "window"); m.value == limit && w > 0 {
			return seconds(w)
		}
	}
	return 0
}

func (r *reader) add(q Quota) {
	if len(r.found) < MaxQuotas {
		r.found = append(r.found, q)
	}
}

// limits adds what the members of RateLimit say to the policies of their names. Draft 7
// has a dictionary in which each member is one number of the one limit.
func (r *reader) limits(limits []member) {
	one := Quota{Unit: Requests, Limit: -1, Remaining: -1}
	for _, m := range limits {
		if m.dictionary {
			switch m.name {
			case "limit":
				one.Limit = m.value
			case "remaining":
				one.Remaining = m.value
			case "reset":
				one.Reset = seconds(m.value)
			}
			continue
		}
		left, effective := m.number("r"), m.number("t")
		if left < 0 {
			left, effective = m.number("a"), m.number("w", "window")
		}
		if left < 0 {
			continue // it does not say what the time is for
		}
		reset := seconds(effective)
		if known := r.policy(m.name, -1); known != nil {
			known.Remaining, known.Reset = left, reset
		} else {
			r.add(Quota{Name: m.name, Unit: Requests, Limit: -1, Remaining: left, Reset: reset})
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

// policyOf returns what a member of RateLimit-Policy says. Before draft 8 it was an Integer.
func policyOf(m *member) Quota {
	q := Quota{Name: m.name, Unit: cmp.Or(m.params["qu"], Requests), Limit: m.number("q"), Window: seconds(m.number("w", "window")), Remaining: -1}
	if q.Limit < 0 && !m.dictionary {
		q.Limit = m.value
	}
	return q
}

func seconds(n int64) time.Duration { return Duration(float64(n), time.Second) }

// members returns the members of a list.
func (r *reader) members(field string) []member {
	return members(r.lines(field), MaxQuotas)
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

// count returns the number that a field begins with, or -1.
func (r *reader) count(field string) int64 {
	value, _, _ := strings.Cut(r.first(field), ",")
	value, _, _ = strings.Cut(value, ";")
	if n, ok := Number(value); ok && n < MaxCount {
		return int64(n)
	}
	return -1
}
