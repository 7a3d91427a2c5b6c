// Package ratefiber tells clients of a fiber server, of version 3, about rate limits.
//
//	app.Use(ratefiber.Middleware())
//
// A handler that a limit has refused returns the error. The client gets 429 with
// Retry-After, or 503 if the limiter could not decide. The context of a call is
// c.Context(), in a directive ctx=#c.Context(). Package ratefiber2 is for fiber of
// version 2.
package ratefiber

import (
	"errors"
	"net/http"

	"github.com/gofiber/fiber/v3"

	"github.com/rategen/rategen/runtime/ratefasthttp"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// Middleware is [ratehttp.Middleware] for fiber. It answers the errors of refusals, as
// [ratehttp.Error] does, and returns others to fiber. Use it before all other
// middleware that may be refused or that changes errors.
func Middleware(opts ...ratehttp.Option) fiber.Handler { return through(ratehttp.Middleware(opts...)) }

// Limit is [ratehttp.RequestLimit.Wrap] for fiber. Its Refund gets the status that fiber has
// for the error of a handler: the Code of a [fiber.Error], or 500. A limit on calls in
// flight counts a call until its handler returns, and not a stream that fiber sends after that.
func Limit(l ratehttp.RequestLimit) fiber.Handler { return through(l.Wrap) }

func through(middleware func(http.Handler) http.Handler) fiber.Handler {
	middleware(http.NotFoundHandler()) // one that cannot work panics here, and not for each request
	return func(c fiber.Ctx) error {
		return ratefasthttp.Serve(c.RequestCtx(), c.Context(), middleware, func(r *http.Request) (int, error) {
			c.SetContext(r.Context())
			err := c.Next()
			r.Pattern = c.Method() + " " + c.Route().Path
			var failed *fiber.Error
			switch {
			case errors.As(err, &failed):
				return failed.Code, err
			case err != nil:
				return http.StatusInternalServerError, err
			}
			return c.Response().StatusCode(), nil
		})
	}
}
