package ratehttp

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratefield"
	"github.com/rategen/rategen/runtime/rule"
)

// The problem types of section 10.2 of the draft, with their registered titles.
const (
	typesOfProblems  = "https://iana.org/assignments/http-problem-types#"
	quotaExceeded    = typesOfProblems + "quota-exceeded"
	reducedCapacity  = typesOfProblems + "temporary-reduced-capacity"
	quotaTitle       = "Quota Exceeded"
	capacityTitle    = "Temporary Reduced Capacity"
	unspecifiedType  = "about:blank" // RFC 9457, section 4.2.1: the title is the status
	problemMediaType = "application/problem+json"
	plainMediaType   = "text/plain; charset=utf-8"
)

// A problem is a document of RFC 9457.
type problem struct {
	Type     string   `json:"type"`
	Title    string   `json:"title"`
	Status   int      `json:"status"`
	Detail   string   `json:"detail,omitempty"`
	Policies []string `json:"violated-policies,omitempty"`
}

// respond answers a refused request. e is nil if the request has passed no
// middleware.
func respond(w http.ResponseWriter, r *http.Request, e *exchange, a Answer) {
	own := writerOf(w)
	if e != nil {
		e.answered.Store(true)
	}
	if own != nil && own.started.Load() || e != nil && e.writer.started.Load() {
		return // nothing can be said any more
	}
	h := w.Header()
	for name := range h {
		if drops(name) || name == "Content-Encoding" && own != nil && !own.encodes {
			delete(h, name)
		}
	}
	values := [...]string{"no-store", "nosniff"} // in one piece
	h["Cache-Control"], h["X-Content-Type-Options"] = values[:1:1], values[1:]
	if a.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(a.RetryAfter, 10))
	} else {
		h.Del("Retry-After")
	}
	if a.language != "" {
		h.Set("Content-Language", a.language)
	}
	if e == nil {
		writeOnlyField(h, a)
	} else if e.config.cors {
		e.checkCORS(h)
	}
	protocol := protocolOf(r)
	if protocol == nil && e != nil && e.config.answer != nil {
		e.config.answer(w, r, a)
		if own == nil || own.started.Load() {
			own.finish()
			return
		}
		// It has written nothing, which would be the answer to a success.
	}
	if protocol != nil {
		protocol.answer(w, protocol.mediaType, a)
	} else if prefers(r.Header["Accept"], "text/plain", problemMediaType) {
		send(w, a.Status, plainMediaType, []byte(strings.ToValidUTF8(a.Detail, "\uFFFD")+"\n"))
	} else {
		body, _ := json.Marshal(newProblem(a)) // strings and numbers
		send(w, a.Status, problemMediaType, append(body, '\n'))
	}
	own.finish()
}

// send writes an answer whose length is known unless a middleware encodes it, so that
// servers drop what a handler writes after it.
func send(w http.ResponseWriter, status int, mediaType string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", mediaType)
	if h["Content-Encoding"] == nil {
		h.Set("Content-Length", strconv.Itoa(len(body)))
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // fails if the client has gone, or wants no body
}

func newProblem(a Answer) problem {
	p := problem{Type: unspecifiedType, Title: http.StatusText(a.Status), Status: a.Status, Detail: a.Detail, Policies: a.Policies}
	switch a.Status {
	case http.StatusTooManyRequests:
		p.Type, p.Title = quotaExceeded, quotaTitle
	case http.StatusServiceUnavailable:
		p.Type, p.Title = reducedCapacity, capacityTitle
	}
	if p.Title == "" {
		p.Title = "Error"
	}
	return p
}

// writeOnlyField writes the field RateLimit for the limit that a refusal names, where
// no middleware knows more.
func writeOnlyField(h http.Header, a Answer) {
	var limited *runtime.LimitedError
	if a.RetryAfter > 0 && errors.As(a.Err, &limited) && limited.Source != rule.SourceProcess {
		policy := standard.policies.Lookup(limited.Rule, limited.Outgoing())
		if policy.Audience != ratefield.Public {
			return
		}
		m := ratefield.Member{Name: policy.Name, Known: true, Left: limited.Remaining, Effective: a.RetryAfter}
		add(h, limitField, []string{string(ratefield.AppendLimits(nil, []ratefield.Member{m}, standard.draft))})
	}
}
