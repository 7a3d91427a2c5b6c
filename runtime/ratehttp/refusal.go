package ratehttp

import (
	"context"
	"errors"
	"net/http"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratefield"
)

// An Answer is what a refused request is told, see [WithAnswer].
type Answer struct {
	// Err is the limiter's own error, whatever the program has made of it. Its
	// text is not for clients.
	Err error
	// Status is 429 if the caller is over a limit, 503 if the limiter could not
	// decide, and 500 for a [runtime.ErrInvalidLimit].
	Status int
	// RetryAfter is the value of the field Retry-After in seconds: the earliest
	// time at which the call can be admitted, rounded up. It is 0, and there is no
	// such field, if waiting is of no use or nobody knows how long.
	RetryAfter int64
	// Detail is a sentence for people: the message of the rule.
	Detail string
	// Policies are the public names of the limits that refused the request.
	Policies []string
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
// The status is 429, or 503 if the limiter could not decide. The answer has
// Retry-After, Cache-Control: no-store, and a problem document of RFC 9457 with the
// draft's types or, if the client prefers it, a line of text. Requests in gRPC,
// gRPC-Web and the Connect protocol get an error of theirs. Error knows the refusal
// also if [runtime.WithDenied] has given it another form, provided that the request
// has passed [Middleware] or a [Limit].
//
// The error of a context is no refusal. If the header of the answer was sent before,
// Error writes nothing. What a handler writes after the answer is dropped. A
// Content-Encoding stays if a middleware has set it, which then encodes the answer; so
// it does where [Middleware] and [Limit] cannot tell who has.
func Error(w http.ResponseWriter, r *http.Request, err error) bool {
	r = orEmpty(r)
	e := exchangeOf(r.Context())
	cause := refusalOf(e, err)
	if cause == nil {
		return false
	}
	respond(w, r, e, answerTo(e, cause))
	return true
}

// Deny answers a request whose call [runtime.Limiter.Take] did not admit, as [Error]
// does, and whatever the error is. Generated code calls it where a method has no
// error to return. It needs no middleware.
//
// A context that has ended is answered with 503. Another error is one that
// [runtime.WithDenied] has made where no middleware can tell of what: it is answered
// with the status that its method StatusCode() int returns, or 429.
func Deny(w http.ResponseWriter, r *http.Request, err error) {
	r = orEmpty(r)
	e := exchangeOf(r.Context())
	if cause := refusalOf(e, err); cause != nil {
		respond(w, r, e, answerTo(e, cause))
		return
	}
	a := Answer{Err: err, Status: http.StatusTooManyRequests, Detail: runtime.DefaultMessage}
	var own interface{ StatusCode() int }
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		a.Status, a.Detail = http.StatusServiceUnavailable, "The request ended before it could be decided."
	case errors.As(err, &own):
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
	return e.cause(err)
}

// answerTo returns what a client is told about a refusal.
func answerTo(e *exchange, cause error) Answer {
	a := Answer{Err: cause}
	var limited *runtime.LimitedError
	switch {
	case errors.Is(cause, runtime.ErrLimited):
		a.Status, a.Detail = http.StatusTooManyRequests, runtime.DefaultMessage
		if errors.As(cause, &limited) {
			a.Detail, a.Policies = limited.Error(), violatedBy(e, limited)
			if limited.RetryAfter != runtime.Never {
				a.RetryAfter = ratefield.Seconds(limited.RetryAfter)
			}
		}
		if e != nil && a.RetryAfter > 0 {
			a.RetryAfter += e.jitter
		}
	case errors.Is(cause, runtime.ErrUnavailable), errors.Is(cause, runtime.ErrInvalidKey):
		a.Status = http.StatusServiceUnavailable
		a.Detail = "It cannot be decided now whether the request is within its limits."
	default:
		a.Status, a.Detail = http.StatusInternalServerError, "The limits of the request are invalid."
	}
	return a
}

// violatedBy returns the public names of the policies that a denial is about: those
// that have refused the request, and the one that the error names in any case.
func violatedBy(e *exchange, limited *runtime.LimitedError) []string {
	config := standard
	var names []string
	if e != nil {
		config, names = e.config, e.violated()
	}
	named := config.policies.of(limited.Rule)
	if named.Hidden {
		return names
	}
	for _, name := range names {
		if name == named.Name {
			return names
		}
	}
	return append(names, named.Name)
}
