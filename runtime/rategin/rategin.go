// Package rategin tells clients of a gin server about rate limits.
//
//	engine.Use(rategin.Middleware())
//
// A handler that a limit has refused hands the error to gin, with c.Error or
// c.AbortWithError, or answers by [Deny]. The client gets 429 with Retry-After, or 503
// if the limiter could not decide.
//
// Pass on c.Request.Context(), not c: a *gin.Context has the values of its request only
// if the engine's ContextWithFallback is true.
package rategin

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/rategen/rategen/runtime/ratehttp"
)

// Middleware is [ratehttp.Middleware] for gin. Use it before all other middleware that
// may be refused. After the handlers it answers a refusal among the errors of the
// context, as [ratehttp.Error] does, if no part of the body was written: the status of
// c.AbortWithError then has no effect. Where a limit has refused a call of the request, other errors of
// the context, with no status set, are no answer, and what middleware outside then writes is dropped.
func Middleware(opts ...ratehttp.Option) gin.HandlerFunc {
	return through(ratehttp.Middleware(opts...), func(c *gin.Context, w *writer) {
		if w.sent() {
			return
		}
		for _, e := range c.Errors {
			if ratehttp.Error(w.inner, c.Request, e.Err) {
				return
			}
		}
	})
}

// Limit is [ratehttp.RequestLimit.Wrap] for gin. Its Refund gets the status of the answer,
// also of one that has no body.
func Limit(l ratehttp.RequestLimit) gin.HandlerFunc {
	return through(l.Wrap, func(*gin.Context, *writer) {})
}

// Deny answers a refused request, as [ratehttp.Deny] does, and no other handler is
// called. In a directive it is written deny=rategin.Deny(#c,#err).
func Deny(c *gin.Context, err error) {
	var w http.ResponseWriter = c.Writer
	if own, ok := w.(*writer); ok {
		w = own.inner
	}
	ratehttp.Deny(w, c.Request, err)
	c.Abort()
}

// through returns a handler of gin that passes through a middleware of net/http. When
// the handlers below have returned, done is called.
func through(middleware func(http.Handler) http.Handler, done func(*gin.Context, *writer)) gin.HandlerFunc {
	// A middleware that cannot work panics here, and not for each request.
	middleware(http.NotFoundHandler())
	return func(c *gin.Context) {
		outer := c.Writer
		w := &writer{ResponseWriter: outer, status: outer.Status()}
		defer func() {
			if w.answered() {
				c.Writer = w // so that an error handler outside does not write a second answer
				return
			}
			c.Writer = outer
		}()
		middleware(http.HandlerFunc(func(inner http.ResponseWriter, r *http.Request) {
			if route := c.FullPath(); route != "" {
				r.Pattern = r.Method + " " + route
			}
			w.inner = inner
			c.Writer, c.Request = w, r
			c.Next()
			done(c, w)
			if w.set || w.begun || w.status != http.StatusOK {
				w.send()
			}
		})).ServeHTTP(outer, c.Request)
		if w.inner == nil {
			c.Abort()
		}
	}
}
