// Package rateecho4 tells clients of an echo server, of version 4, about rate limits.
//
//	e.Use(rateecho4.Middleware())
//
// A handler that a limit has refused returns the error. The client gets 429 with
// Retry-After, or 503 if the limiter could not decide. Package rateecho is for echo of
// version 5.
package rateecho4

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/rategen/rategen/runtime/ratehttp"
)

// Middleware is [ratehttp.Middleware] for echo. It answers the errors of refusals, as
// [ratehttp.Error] does, and returns others to echo. Use it before all other
// middleware that may be refused or that changes errors.
func Middleware(opts ...ratehttp.Option) echo.MiddlewareFunc {
	wrap := echo.WrapMiddleware(ratehttp.Middleware(opts...))
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return wrap(func(c echo.Context) error {
			if route := c.Path(); route != "" {
				c.Request().Pattern = c.Request().Method + " " + route
			}
			err := next(c)
			if err != nil && !c.Response().Committed && ratehttp.Error(c.Response(), c.Request(), err) {
				return nil
			}
			return err
		})
	}
}

// Limit is [ratehttp.RequestLimit.Wrap] for echo. If the limit has a Refund, an error of the
// handler is answered here by the server's HTTPErrorHandler, which knows its status.
func Limit(l ratehttp.RequestLimit) echo.MiddlewareFunc {
	l.Wrap(http.NotFoundHandler()) // one that cannot work panics here, and not for each request
	wrap := echo.WrapMiddleware(l.Wrap)
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		if l.Refund == nil {
			return wrap(next)
		}
		return wrap(func(c echo.Context) error {
			err := next(c)
			if err != nil && !c.Response().Committed && !ratehttp.Error(c.Response(), c.Request(), err) {
				c.Error(err)
			}
			return err
		})
	}
}
