// Package ratefasthttp has requests of fasthttp pass through package ratehttp. The
// adapters of frameworks on fasthttp use it, such as ratefiber.
package ratefasthttp

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"

	"github.com/valyala/fasthttp"

	"github.com/rategen/rategen/runtime/ratehttp"
)

// Serve passes a request through a middleware of net/http that looks at headers alone:
// that of [ratehttp.Middleware], or the method Wrap of a [ratehttp.RequestLimit]. parent is
// the context of the request. The body of the request is not read.
//
// If the middleware admits the request, next is called with a request that has the
// context to use from there on, and no body. It may set the request's Pattern to its route, for the log.
// An error of next that is a refusal is answered, as by [ratehttp.Error]. With another one fail is called, if
// it is not nil, and told whether a limit has refused a call of the request: it has the framework answer
// the error, and returns true, or leaves it. An error that is left is returned.
//
// fasthttp does not tell a handler that writes nothing from one that sets the status 200: both
// are no answer.
//
// A call ends when next returns. fasthttp sends an answer that is a stream only then, so a limit
// on calls in flight does not count those that are being sent: bound them where they are written.
func Serve(c *fasthttp.RequestCtx, parent context.Context, middleware func(http.Handler) http.Handler,
	next func(*http.Request) error, fail func(err error, refused bool) (answered bool)) error {
	r, err := request(c)
	if err != nil {
		return err
	}
	answer := &writer{c: c, header: http.Header{}}
	answer.load()
	middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err = next(r)
		answer.load()
		if err != nil && (ratehttp.Error(w, r, err) || fail != nil && fail(err, ratehttp.IsRefused(r))) {
			err = nil
			answer.load()
		}
		if answer.status > 0 { // it is a refusal
			return
		}
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
		} else if !answer.empty() {
			w.WriteHeader(c.Response.StatusCode())
		}
	})).ServeHTTP(answer, r.WithContext(parent))
	if answer.status == 0 {
		answer.WriteHeader(c.Response.StatusCode())
	}
	return err
}

// request returns a request of net/http without its body, which may be large, and which who
// handles the request may want as a stream.
func request(c *fasthttp.RequestCtx) (*http.Request, error) {
	header := &c.Request.Header
	uri := string(header.RequestURI())
	target, err := url.ParseRequestURI(uri)
	if err != nil {
		return nil, err
	}
	r := &http.Request{
		Method: string(header.Method()), URL: target, RequestURI: uri, Proto: string(header.Protocol()), Header: http.Header{},
		Host: string(c.Host()), RemoteAddr: c.RemoteAddr().String(), TLS: c.TLSConnectionState(),
		Body: http.NoBody, ContentLength: int64(header.ContentLength()),
	}
	if r.ContentLength < -1 {
		r.ContentLength = 0 // fasthttp's word for a request that has no body
	}
	r.ProtoMajor, r.ProtoMinor, _ = http.ParseHTTPVersion(r.Proto)
	header.VisitAll(func(name, value []byte) {
		if name := string(name); name != fasthttp.HeaderHost {
			r.Header.Add(name, string(value))
		}
	})
	return r, nil
}

// A writer changes an answer of fasthttp, which is sent when all handlers have returned.
type writer struct {
	c       *fasthttp.RequestCtx
	own     http.Header // of the answer, as it was last read or written
	header  http.Header // that it is to have
	status  int         // that was set
	written bool
}

// empty reports whether the handler has written nothing.
func (w *writer) empty() bool {
	r := &w.c.Response
	return r.StatusCode() == http.StatusOK && !r.IsBodyStream() && len(r.Body()) == 0 && !w.c.Hijacked()
}

// load reads the header of the answer, but for what is to be changed in it.
func (w *writer) load() {
	own := http.Header{}
	w.c.Response.Header.VisitAll(func(name, value []byte) {
		if name := string(name); name != fasthttp.HeaderContentEncoding { // which goes with a body that is there
			own.Add(name, string(value))
		}
	})
	for name, values := range w.header {
		if slices.Equal(values, w.own[name]) {
			delete(w.header, name)
		}
	}
	for name, values := range own {
		if w.header[name] == nil {
			w.header[name] = slices.Clip(values)
		}
	}
	w.own = own
}

// Header implements [http.ResponseWriter].
func (w *writer) Header() http.Header { return w.header }

// WriteHeader implements [http.ResponseWriter].
func (w *writer) WriteHeader(status int) {
	w.status = status
	w.c.SetStatusCode(status)
	// All are deleted before any is added, as fasthttp changes the order of lines then.
	for name, values := range w.own {
		if !slices.Equal(values, w.header[name]) {
			w.c.Response.Header.Del(name)
		}
	}
	for name, values := range w.header {
		if !slices.Equal(values, w.own[name]) {
			for _, value := range values {
				w.c.Response.Header.Add(name, value)
			}
		}
	}
	w.own = maps.Clone(w.header)
}

// Write implements [http.ResponseWriter]. What it writes takes the place of the body of
// a handler that was refused in the middle.
func (w *writer) Write(p []byte) (int, error) {
	if !w.written {
		w.written = true
		w.c.Response.ResetBody()
		w.c.Response.Header.Del(fasthttp.HeaderContentEncoding)
	}
	return w.c.Write(p)
}
