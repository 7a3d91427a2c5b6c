package ratehttp

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
)

// A writer adds the fields to an answer at the moment when its header is sent. It is
// used by one goroutine at a time, as every [http.ResponseWriter] is, but for started.
type writer struct {
	inner    http.ResponseWriter
	exchange *exchange   // nil: no fields, the status alone is of interest
	status   int         // that was sent, once started
	answered bool        // with a refusal: what the handler writes after it is dropped
	dropped  http.Header // that the handler sets then
	encodes  bool        // inner encodes what is written
	started  atomic.Bool // the header is sent, or the connection is the handler's; any goroutine may ask
	bounded  bool        // a refusal of known length is sent through a layer
	left     int64       // of it, if bounded
	http1    http1Writer
}

// isEncoder reports whether a middleware that compresses has announced it before the
// handler began.
func isEncoder(w http.ResponseWriter) bool { return w.Header()["Content-Encoding"] != nil }

// start adds the fields to a header that is about to be sent.
func (w *writer) start(status int) {
	if !w.started.Load() {
		w.status = status
		w.started.Store(true)
		if w.exchange != nil {
			w.exchange.writeFields(w.inner.Header(), status)
			w.bound()
		}
	}
}

// bound notes the length of a refusal that comes through a layer, which does not know that what a
// handler writes after it is dropped: too much of it breaks an answer, as a whole in one write.
func (w *writer) bound() {
	if !w.answered && w.exchange.answered.Load() {
		if n, err := strconv.ParseInt(w.inner.Header().Get("Content-Length"), 10, 64); err == nil {
			w.bounded, w.left = true, n
		}
	}
}

// writeBounded writes what is left of a refusal, and drops the rest.
func (w *writer) writeBounded(p []byte) (int, error) {
	n, err := w.inner.Write(p[:min(int64(len(p)), w.left)])
	w.left -= int64(n)
	if err == nil {
		n = len(p)
	}
	return n, err
}

// finish drops what a handler writes from now on. It is told that all is written: one that takes an error
// for a broken connection would break it.
func (w *writer) finish() {
	if w != nil {
		w.answered = true
	}
}

// Header implements [http.ResponseWriter].
func (w *writer) Header() http.Header {
	if !w.answered {
		return w.inner.Header()
	}
	if w.dropped == nil {
		w.dropped = w.inner.Header().Clone()
	}
	return w.dropped
}

// WriteHeader implements [http.ResponseWriter]. A status such as 103 is not the
// answer yet, so it comes without fields.
func (w *writer) WriteHeader(status int) {
	if w.answered {
		return
	}
	if w.exchange != nil && w.exchange.overrule(status) {
		return
	}
	if status < 100 || status > 199 || status == http.StatusSwitchingProtocols {
		w.start(status)
	}
	w.inner.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (w *writer) Write(p []byte) (int, error) {
	if w.answered {
		return len(p), nil
	}
	w.start(http.StatusOK)
	if w.bounded {
		return w.writeBounded(p)
	}
	return w.inner.Write(p)
}

// WriteString implements [io.StringWriter].
func (w *writer) WriteString(s string) (int, error) {
	if w.answered {
		return len(s), nil
	}
	w.start(http.StatusOK)
	if w.bounded {
		return w.writeBounded([]byte(s))
	}
	return io.WriteString(w.inner, s)
}

// ReadFrom implements [io.ReaderFrom], so that a server can go on to send files
// without copying them. It starts the answer when there is something to send: after a
// reader that fails at once a handler can still send another status.
func (w *writer) ReadFrom(from io.Reader) (n int64, err error) {
	if !w.started.Load() {
		// The server copies as much by itself, to find the content's type.
		n, err = io.Copy(struct{ io.Writer }{w}, io.LimitReader(from, sniffed))
		if err != nil || n < sniffed {
			return n, err
		}
	}
	if w.answered || w.bounded { // it drops what is too much
		rest, err := io.Copy(struct{ io.Writer }{w}, from)
		return n + rest, err
	}
	rest, err := io.Copy(w.inner, from)
	return n + rest, err
}

// sniffed is how many bytes [http.DetectContentType] looks at.
const sniffed = 512

// FlushError is what [http.ResponseController] calls. It sends the header, unless no writer
// below can flush: a buffer of one holds it back then, and the answer has not begun.
func (w *writer) FlushError() (err error) {
	if !w.answered && !w.started.Load() {
		var before [len(fields)][]string
		for i, name := range fields {
			before[i] = w.inner.Header()[name]
		}
		err = http.ErrNotSupported // if it panics
		defer func() {
			if errors.Is(err, http.ErrNotSupported) {
				w.unstart(before)
			}
		}()
		w.start(http.StatusOK)
	}
	err = http.NewResponseController(w.inner).Flush()
	return err
}

// unstart takes back a start, and the fields as they were before it.
func (w *writer) unstart(before [len(fields)][]string) {
	w.started.Store(false)
	for i, name := range fields {
		w.inner.Header()[name] = before[i]
		if before[i] == nil {
			w.inner.Header().Del(name)
		}
	}
}

// Unwrap lets [http.ResponseController] reach the writer below for what does not
// concern the header, such as deadlines.
func (w *writer) Unwrap() http.ResponseWriter { return w.inner }
