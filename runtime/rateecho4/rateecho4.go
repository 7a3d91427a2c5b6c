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
// [ratehttp.Error] does, and returns others to echo. Where a limit has refused a call of the request,
// the server's HTTPErrorHandler answers these here, and middleware outside gets no error. Use it before all other
// middleware that may be refused. Middleware that logs or changes errors may stand on either side of it.
func Middleware(opts ...ratehttp.Option) echo.MiddlewareFunc {
	return through(ratehttp.Middleware(opts...), false)
}

// Limit is [ratehttp.RequestLimit.Wrap] for echo. If the limit has a Refund, an error of the
// handler is answered here by the server's HTTPErrorHandler, which knows its status.
func Limit(l ratehttp.RequestLimit) echo.MiddlewareFunc { return through(l.Wrap, l.Refund != nil) }

// through passes requests through a middleware of net/http. Errors are answered inside of it if it needs
// their status: always, or for a request that a limit has refused.
func through(middleware func(http.Handler) http.Handler, always bool) echo.MiddlewareFunc {
	middleware(http.NotFoundHandler()) // one that cannot work panics here, and not for each request
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) (err error) {
			outer := c.Response()
			defer c.SetResponse(outer) // which knows what was sent
			middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if route := c.Path(); route != "" {
					r.Pattern = r.Method + " " + route
				}
				inner := echo.NewResponse(w, c.Echo())
				inner.After(func() { inner.Status = outer.Status })
				c.SetRequest(r)
				c.SetResponse(inner)
				if err = next(c); err == nil || inner.Committed {
					return
				}
				if !ratehttp.Error(inner, r, err) {
					if !always && !ratehttp.IsRefused(r) {
						return
					}
					c.Error(err)
				}
				err = nil
			})).ServeHTTP(outer, c.Request())
			return err
		}
	}
}
