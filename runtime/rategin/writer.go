package rategin

import (
	"bufio"
	"net"
	"net/http"

	"github.com/gin-gonic/gin"
)

// A writer is gin's, with a writer of net/http above it. In gin a status is set as often
// as one likes, and sent with the first byte of the body or at the end. So it is passed
// on then, and the writer above sees one status: the one that the client gets.
type writer struct {
	gin.ResponseWriter // below inner
	inner              http.ResponseWriter
	status             int
	set                bool // the status is
	begun              bool // by WriteHeaderNow: the status stays
	passed             bool // to inner
}

// sent reports whether nothing can be changed any more.
func (w *writer) sent() bool { return w.passed || w.ResponseWriter.Written() }

// answered reports whether the client has got a refusal in place of what the handlers have written:
// what is written from then on is dropped by inner.
func (w *writer) answered() bool {
	return w.inner != nil && w.ResponseWriter.Written() && (!w.passed || w.ResponseWriter.Status() != w.status)
}

// send passes the status on.
func (w *writer) send() {
	if !w.sent() {
		w.passed = true
		w.inner.WriteHeader(w.status)
		if w.begun {
			w.ResponseWriter.WriteHeaderNow()
		}
	}
}

// WriteHeader implements [http.ResponseWriter].
func (w *writer) WriteHeader(status int) {
	if status > 0 && !w.Written() {
		w.status, w.set = status, true
	}
}

// WriteHeaderNow implements [gin.ResponseWriter]. The header goes with the body, or at
// the end, as net/http sends it too.
func (w *writer) WriteHeaderNow() { w.begun = true }

// Write implements [http.ResponseWriter].
func (w *writer) Write(p []byte) (int, error) {
	w.send()
	return w.inner.Write(p)
}

// WriteString implements [gin.ResponseWriter].
func (w *writer) WriteString(s string) (int, error) { return w.Write([]byte(s)) }

// Flush implements [http.Flusher].
func (w *writer) Flush() {
	w.send()
	_ = http.NewResponseController(w.inner).Flush()
}

// Hijack implements [http.Hijacker].
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.passed = true
	return http.NewResponseController(w.inner).Hijack()
}

// Written implements [gin.ResponseWriter].
func (w *writer) Written() bool { return w.begun || w.sent() }

// Status implements [gin.ResponseWriter].
func (w *writer) Status() int {
	if w.sent() {
		return w.ResponseWriter.Status()
	}
	return w.status
}

// Unwrap is for [http.ResponseController].
func (w *writer) Unwrap() http.ResponseWriter { return w.inner }
