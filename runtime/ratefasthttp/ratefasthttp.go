// Package ratefasthttp has requests of fasthttp pass through package ratehttp. The
// adapters of frameworks on fasthttp use it, such as ratefiber.
package ratefasthttp

import (
	"context"
	"net/http"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"

	"github.com/rategen/rategen/runtime/internal/message"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// Serve passes a request through a middleware of net/http that looks at headers alone:
// that of [ratehttp.Middleware], or the method Wrap of a [ratehttp.RequestLimit]. parent is
// the context of the request.
//
// If the middleware admits the request, next is called with a request that has the
// context to use from there on, and no body. It returns the status that the answer has or,
// with an error, will have, and may set the request's Pattern to its route, for the log.
// An error that is a refusal is answered, as by [ratehttp.Error], and so is one that
// hides a refusal under [ratehttp.WithForcedRefusals]. Another one is returned.
func Serve(c *fasthttp.RequestCtx, parent context.Context, middleware func(http.Handler) http.Handler, next func(*http.Request) (status int, err error)) error {
	r := new(http.Request)
	if err := fasthttpadaptor.ConvertRequest(c, r, true); err != nil {
		return err
	}
	var err error
	answer := &writer{c: c, header: http.Header{}}
	middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var status int
		if status, err = next(r); err != nil && ratehttp.Error(w, r, err) {
			err = nil
			return
		}
		answer.see()
		w.WriteHeader(status)
		if answer.status != status { // the middleware has answered in place of next
			err = nil
		}
	})).ServeHTTP(answer, r.WithContext(parent))
	return err
}

// A writer adds to an answer of fasthttp, which is sent when all handlers have returned.
type writer struct {
	c       *fasthttp.RequestCtx
	header  http.Header // what is added
	status  int         // that was set
	written bool
}

// Header implements [http.ResponseWriter].
func (w *writer) Header() http.Header { return w.header }

// see has the middleware see the fields of the handler that it would write in place of others.
func (w *writer) see() {
	for _, name := range [...]string{"Retry-After", "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"} {
		if value := w.c.Response.Header.Peek(name); len(value) > 0 {
			w.header.Set(name, string(value))
		}
	}
}

// WriteHeader implements [http.ResponseWriter].
func (w *writer) WriteHeader(status int) {
	w.status = status
	w.c.SetStatusCode(status)
	for name, values := range w.header {
		w.c.Response.Header.Del(name)
		for _, value := range values {
			w.c.Response.Header.Add(name, value)
		}
	}
}

// Write implements [http.ResponseWriter]. What it writes takes the place of the body of
// a handler that was refused in the middle.
func (w *writer) Write(p []byte) (int, error) {
	if !w.written {
		w.written = true
		w.c.Response.ResetBody()
		w.drop()
	}
	return w.c.Write(p)
}

// drop removes the fields that go with the answer of the handler, but for those that were added.
func (w *writer) drop() {
	var fall []string
	w.c.Response.Header.VisitAll(func(name, _ []byte) {
		key := string(name)
		if _, added := w.header[http.CanonicalHeaderKey(key)]; !added && (message.Falls(key) || key == fasthttp.HeaderContentEncoding) {
			fall = append(fall, key)
		}
	})
	for _, name := range fall {
		w.c.Response.Header.Del(name)
	}
}
