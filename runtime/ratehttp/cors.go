package ratehttp

import (
	"net/http"
	"net/url"

	"github.com/rategen/rategen/runtime/internal/report"
)

const (
	exposeField = "Access-Control-Expose-Headers"
	exposed     = "RateLimit, RateLimit-Policy, Retry-After"
	exposedToo  = ", X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset"
)

// isPreflight reports whether a browser asks by a request if a script may send another:
// section 3.2.2 of the Fetch standard.
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header["Origin"] != nil && r.Header["Access-Control-Request-Method"] != nil
}

// expose lets scripts of other origins read the fields. A list of the program's own
// stays, on a line of its own.
func (c *config) expose(h http.Header, r *http.Request) {
	if r.Header["Origin"] == nil {
		return
	}
	if c.legacy {
		add(h, exposeField, []string{exposed + exposedToo})
	} else {
		add(h, exposeField, []string{exposed})
	}
}

// checkCORS warns about a refusal that the script behind a request cannot read.
func (e *exchange) checkCORS(h http.Header) {
	origin := e.request.Header.Get("Origin")
	if origin == "" || h["Access-Control-Allow-Origin"] != nil || !e.config.checks.due(report.CorsInside) {
		return
	}
	if from, err := url.Parse(origin); err == nil && from.Host == e.request.Host {
		return // the page is of this server
	}
	e.config.checks.warn(report.CorsInside, "")
}
