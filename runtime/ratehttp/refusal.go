package ratehttp

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratefield"
	"github.com/rategen/rategen/runtime/rule"
)

// An Answer is what a refused request is told, see [WithAnswer].
type Answer struct {
	// Err is the limiter's own error, whatever the program has made of it. Its
	// text is not for clients.
	Err error
	// Status is 429 if the caller is over a limit, 503 if the limiter could not
	// decide and for [ratefield.Outgoing] limits, 500 for a [runtime.ErrInvalidLimit]
	// and a [runtime.ErrInvalidKey], and 403 for an [ErrNetworkRefused].
	Status int
	// RetryAfter is the value of the field Retry-After in seconds: the earliest
	// time at which the call can be admitted, rounded up; for a limit on calls in
	// flight see [ratefield.Holds]. It is 0, and there is no such field, if waiting is
	// of no use or nobody knows how long.
	RetryAfter int64
	// Detail is a sentence for people: the message of the rule, or that of
	// [WithMessages].
	Detail string
	// Policies are the public names of the limits that refused the request.
	Policies []string
	// Reason is one of the reasons of package ratefield.
	Reason string

	language string // of Detail, or empty if it is unknown
}

// Error answers a request if err is a refusal by a limiter, and reports whether it
// is:
//
//	if err != nil {
//		if ratehttp.Error(w, r, err) {
//			return
//		}
//		http.Error(w, "internal error", http.StatusInternalServerError)
//		return
//	}
//
// The status is 429, or 503 if the limiter could not decide or the limit is on calls of
// the service's own. The answer has
// Retry-After, Cache-Control: no-store, and a problem document of RFC 9457 with the
// draft's types or, if the client prefers it, a line of text. Requests in gRPC,
// gRPC-Web and the Connect protocol get an error of theirs. Error knows the refusal
// also if [runtime.WithRefusalError] has given it another form, provided that the request
// has passed [Middleware] or a [RequestLimit].
//
// The error of a context is no refusal. If the header of the answer was sent before,
// Error writes nothing. What a handler writes after the answer is dropped. A
// Content-Encoding stays if a middleware has set it, which then encodes the answer; so
// it does where [Middleware] and [RequestLimit] cannot tell who has.
func Error(w http.ResponseWriter, r *http.Request, err error) bool {
	r = orEmpty(r)
	e := exchangeOf(r.Context())
	cause := refusalOf(e, err)
	if cause == nil {
		return false
	}
	respond(w, r, e, answerTo(e, r, cause))
	return true
}

// Deny answers a request whose call [runtime.Limiter.Take] did not admit, as [Error]
// does, and whatever the error is. Generated code calls it where a method has no
// error to return. It needs no middleware.
//
// A context that has ended is answered with 503. Another error is one that
// [runtime.WithRefusalError] has made where no middleware can tell of what: it is answered
// with the status that its method StatusCode() int returns, or 429.
func Deny(w http.ResponseWriter, r *http.Request, err error) {
	r = orEmpty(r)
	e := exchangeOf(r.Context())
	if cause := refusalOf(e, err); cause != nil {
		respond(w, r, e, answerTo(e, r, cause))
		return
	}
	a := Answer{Err: err, Status: http.StatusTooManyRequests, Detail: runtime.DefaultMessage, Reason: ratefield.ReasonLimited}
	var own interface{ StatusCode() int }
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		a.Status, a.Detail = http.StatusServiceUnavailable, "The request ended before it could be decided."
		a.Reason = ratefield.ReasonUnavailable
	} else if errors.As(err, &own) {
		if status := own.StatusCode(); status >= 400 && status <= 599 && status != a.Status {
			a.Status, a.Detail = status, http.StatusText(status)
		}
	}
	respond(w, r, e, a)
}

// orEmpty returns an empty request for a nil one.
func orEmpty(r *http.Request) *http.Request {
	if r == nil {
		return new(http.Request)
	}
	return r
}

// refusalOf returns the limiter's own error for an error that a handler has got, or
// nil if it is no refusal.
func refusalOf(e *exchange, err error) error {
	if err == nil {
		return nil
	}
	for _, own := range [...]error{runtime.ErrLimited, runtime.ErrUnavailable, runtime.ErrInvalidKey, runtime.ErrInvalidLimit} {
		if errors.Is(err, own) {
			return err
		}
	}
	if e == nil {
		return nil
	}
	return e.record.Cause(err)
}

// answerTo returns what a client is told about a refusal. e is nil if the request has
// passed no middleware.
func answerTo(e *exchange, r *http.Request, cause error) Answer {
	a, c, rule := Answer{Err: cause}, standard, ""
	if e != nil {
		c = e.config
	}
	var limited *runtime.LimitedError
	switch {
	case errors.As(cause, &limited):
		rule = limited.Rule
		a.refuse(e, c, limited)
	case errors.Is(cause, runtime.ErrLimited):
		a.Status, a.Detail, a.Reason = http.StatusTooManyRequests, runtime.DefaultMessage, ratefield.ReasonLimited
	case errors.Is(cause, runtime.ErrUnavailable):
		a.Status, a.Reason = http.StatusServiceUnavailable, ratefield.ReasonUnavailable
		a.Detail = "It cannot be decided now whether the request is within its limits."
	default:
		a.Status, a.Detail, a.Reason = http.StatusInternalServerError, "The limits of the request cannot be applied.", ratefield.ReasonInvalid
		return a
	}
	if text, language := c.messages.Choose(r.Header["Accept-Language"], rule); text != "" && a.Reason != ratefield.ReasonCapacity {
		wait := time.Duration(a.RetryAfter) * time.Second
		if a.Reason == ratefield.ReasonNever {
			wait = runtime.Never
		}
		a.Detail, a.language = runtime.MessageText(text, wait), language
	}
	return a
}

// refuse fills in what a client is told about a refusal by a limit.
func (a *Answer) refuse(e *exchange, c *config, limited *runtime.LimitedError) {
	var record *ratefield.Record
	if e != nil {
		record = &e.record
	}
	told := *limited
	told.RetryAfter = record.RetryAfter(limited)
	a.Status, a.Reason = http.StatusTooManyRequests, ratefield.ReasonLimited
	if told.RetryAfter == runtime.Never {
		a.Reason = ratefield.ReasonNever
	} else {
		a.RetryAfter = ratefield.Seconds(told.RetryAfter)
		if e != nil {
			a.RetryAfter += e.jitter
		}
		told.RetryAfter = time.Duration(a.RetryAfter) * time.Second
	}
	if c.policies.Lookup(limited.Rule, limited.Outgoing()).Audience == ratefield.Outgoing {
		a.Status, a.Reason = http.StatusServiceUnavailable, ratefield.ReasonCapacity
		a.Detail = "The service has no capacity for the request now."
		return
	}
	a.Detail, a.Policies = told.Error(), violatedBy(e, c, limited)
}

// violatedBy returns the public names of the policies that a refusal is about: those
// that have refused the request, and the one that the error names in any case. The cap of
// the process is none of them.
func violatedBy(e *exchange, c *config, limited *runtime.LimitedError) []string {
	var names []string
	if e != nil {
		names = e.violated()
	}
	named := c.policies.Lookup(limited.Rule, limited.Outgoing())
	if named.Audience != ratefield.Public || limited.Source == rule.SourceProcess || slices.Contains(names, named.Name) {
		return names
	}
	return append(names, named.Name)
}
