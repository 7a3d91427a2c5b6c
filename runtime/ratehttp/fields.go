package ratehttp

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/report"
	"github.com/rategen/rategen/runtime/ratefield"
)

// The fields in the form that [http.Header] has for their names.
const (
	policyField    = "Ratelimit-Policy"
	limitField     = "Ratelimit"
	limitLegacy    = "X-Ratelimit-Limit"
	leftLegacy     = "X-Ratelimit-Remaining"
	resetLegacy    = "X-Ratelimit-Reset"
	inlineMembers  = 4
	inlineFieldLen = 256
)

// fields are those that an answer gets when its header is sent.
var fields = [...]string{policyField, limitField, limitLegacy, leftLegacy, resetLegacy, exposeField}

// writeFields adds the fields to the header of an answer that is about to be sent.
// Lists may be split over several lines, so those of other servers, which a proxy
// passes on, stay.
func (e *exchange) writeFields(h http.Header, status int) {
	if e.config.cors {
		e.config.expose(h, e.request)
	}
	if (status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable) && !e.answered.Load() {
		e.writeRetryAfter(h)
	}
	var limitRoom [inlineMembers]ratefield.State
	limits := e.record.Limits(limitRoom[:0])
	if len(limits) == 0 {
		return
	}
	if e.config.legacy {
		e.config.writeLegacy(h, limits, status)
	}
	if e.config.silent {
		return
	}
	var room [inlineMembers]ratefield.Member
	members := e.members(limits, room[:0])
	if len(members) == 0 {
		return
	}
	if isRedirect(status) && exhausted(members) {
		// A client that obeys would wait before it follows: section 6 of the draft.
		for i := range members {
			members[i].Known = false
		}
	}
	var bytes [inlineFieldLen]byte
	text := ratefield.AppendPolicies(bytes[:0], members)
	policies := len(text)
	text = ratefield.AppendLimits(text, members, e.config.draft)
	both := string(text)
	values := [...]string{both[:policies], both[policies:]}
	add(h, policyField, values[:1:1])
	if values[1] != "" {
		add(h, limitField, values[1:])
	}
}

// writeRetryAfter tells the client of a program that answers a refusal with 429 or 503 by itself when to
// come back, unless the program has.
func (e *exchange) writeRetryAfter(h http.Header) {
	var limited *runtime.LimitedError
	if refusal, ok := e.record.Refusal(e.config.policies); h["Retry-After"] == nil && ok && errors.As(refusal.Err, &limited) {
		var a Answer
		a.refuse(e, e.config, limited)
		if a.RetryAfter > 0 {
			h.Set("Retry-After", strconv.FormatInt(a.RetryAfter, 10))
		}
	}
}

// add adds a value to a header without copying it.
func add(h http.Header, name string, value []string) {
	if old := h[name]; len(old) > 0 {
		value = append(old, value...)
	}
	h[name] = value
}

// members appends what the fields say about each limit of the request. If one of
// them has refused it, RateLimit is about those alone: the others are of no concern
// before Retry-After is over.
func (e *exchange) members(limits []ratefield.State, to []ratefield.Member) []ratefield.Member {
	refused := false
	for i := range limits {
		refused = refused || limits[i].Refused && e.config.policies.Lookup(limits[i].Rule, limits[i].Outgoing).Audience == ratefield.Public
	}
	for i := range limits {
		l := &limits[i]
		p := e.config.policies.Lookup(l.Rule, l.Outgoing)
		if p.Audience != ratefield.Public {
			continue
		}
		m := l.Member(p)
		m.Known = m.Known && l.Refused == refused
		if m.Effective > 0 {
			m.Effective += e.jitter
			if rate := e.config.rate; rate > 0 && m.Left/rate >= m.Effective {
				m.Left = rate * m.Effective
			}
		}
		if e.config.partition != nil {
			m.Partition = e.partitionKey(l.Rule)
		}
		to = append(to, m)
	}
	return to
}

// partitionKey returns the partition key of the request for a rule, or "".
func (e *exchange) partitionKey(rule string) (key string) {
	defer func() {
		if recover() != nil {
			e.config.checks.warn(report.PartitionPanicked, "")
		}
	}()
	if value := e.config.partition(e.request, rule); value != "" {
		key = partitionKey(e.config.secret, value)
	}
	return key
}

func isRedirect(status int) bool {
	return status >= 300 && status < 400 && status != http.StatusNotModified
}

func exhausted(members []ratefield.Member) bool {
	for i := range members {
		if members[i].Known && members[i].Left == 0 {
			return true
		}
	}
	return false
}
