// Package ratefiber2 tells clients of a fiber server, of version 2, about rate limits.
//
//	app.Use(ratefiber2.Middleware())
//
// A handler that a limit has refused returns the error. The client gets 429 with
// Retry-After, or 503 if the limiter could not decide. The context of a call is
// c.UserContext(), in a directive ctx=#c.UserContext(). Package ratefiber is for fiber of
// version 3.
package ratefiber2

import (
	"net/http"

	"github.com/gofiber/fiber/v2"

	"github.com/rategen/rategen/runtime/ratefasthttp"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// Middleware is [ratehttp.Middleware] for fiber. It answers the errors of refusals, as
// [ratehttp.Error] does, and returns others to fiber. Where a limit has refused a call of the request, the app's
// ErrorHandler answers these here, and middleware outside gets no error. Use it before all other
// middleware that may be refused. Middleware that logs or changes errors may stand on either side of it.
func Middleware(opts ...ratehttp.Option) fiber.Handler {
	return through(ratehttp.Middleware(opts...), false)
}

// Limit is [ratehttp.RequestLimit.Wrap] for fiber. If the limit has a Refund, an error of the handler is
// answered here by the app's ErrorHandler, which knows its status. A limit on calls in
// flight counts a call until its handler returns, and not a stream that fiber sends after that.
func Limit(l ratehttp.RequestLimit) fiber.Handler { return through(l.Wrap, l.Refund != nil) }

// through passes requests through a middleware of net/http. Errors are answered inside of it if it needs
// their status: always, or for a request that a limit has refused.
func through(middleware func(http.Handler) http.Handler, always bool) fiber.Handler {
	middleware(http.NotFoundHandler()) // one that cannot work panics here, and not for each request
	return func(c *fiber.Ctx) error {
		return ratefasthttp.Serve(c.Context(), c.UserContext(), middleware, func(r *http.Request) error {
			c.SetUserContext(r.Context())
			err := c.Next()
			r.Pattern = c.Method() + " " + c.Route().Path
			return err
		}, func(err error, refused bool) bool {
			if !always && !refused {
				return false
			}
			if c.App().ErrorHandler(c, err) != nil {
				_ = c.SendStatus(http.StatusInternalServerError) // as fiber does
			}
			return true
		})
	}
}
