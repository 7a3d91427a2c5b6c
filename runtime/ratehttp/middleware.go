package ratehttp

import (
	"net/http"

	"github.com/rategen/rategen/runtime/internal/report"
)

// Middleware returns a middleware that writes the fields RateLimit-Policy and
// RateLimit, see package ratefield, for all limits that a request meets in the
// handlers below it, and that [ClientIP], [Error] and [Deny] take their options from.
// It belongs around the server's handler, once; an inner one has no effect.
//
// The fields are added when the handler sends its header, whatever the status. Limits
// that a request meets later, in a stream say, are not in them. A redirection has no
// RateLimit if nothing is left, since a client could wait before it follows. Limits in
// shadow mode, the cap of the process and what no store has counted are not shown.
//
// The writer that handlers get can flush, hijack and push if the one below can, and
// has a method Unwrap for [http.ResponseController]. [http.MaxBytesReader] closes the connection of a
// body that is too large by the server's own writer alone: put [http.MaxBytesHandler] around the middleware.
func Middleware(opts ...Option) func(http.Handler) http.Handler {
	c := newConfig(opts)
	return func(next http.Handler) http.Handler {
		if next == nil {
			panic("ratehttp: the handler below Middleware is nil")
		}
		return &middleware{c, next}
	}
}

type middleware struct {
	config *config
	next   http.Handler
}

func (m *middleware) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if exchangeOf(r.Context()) != nil {
		m.config.checks.warn(report.MiddlewareTwice, "")
		m.next.ServeHTTP(w, r)
		return
	}
	m.config.serve(w, r, m.next)
}
