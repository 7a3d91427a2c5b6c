package ratehttp

import (
	"bufio"
	"net"
	"net/http"
)

// Handlers ask by a type assertion whether a writer can do more than write. So a
// writer has the methods that the one below it has, and no others of these.
type (
	flush  struct{ w *writer }
	hijack struct{ w *writer }
	notify struct{ w *writer }
	push   struct{ w *writer }
)

// Flush implements [http.Flusher]. It sends the header.
func (f flush) Flush() { _ = f.w.FlushError() }

// Hijack implements [http.Hijacker]. The handler writes the answer itself, so no
// field is added to it.
func (h hijack) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffer, err := h.w.inner.(http.Hijacker).Hijack()
	if err == nil {
		h.w.status = http.StatusSwitchingProtocols
		h.w.started.Store(true)
	}
	return conn, buffer, err
}

// CloseNotify implements [http.CloseNotifier], which frameworks still use.
func (n notify) CloseNotify() <-chan bool {
	//lint:ignore SA1019 the writer below has it, and frameworks panic without it
	return n.w.inner.(http.CloseNotifier).CloseNotify()
}

// Push implements [http.Pusher].
func (p push) Push(target string, opts *http.PushOptions) error {
	return p.w.inner.(http.Pusher).Push(target, opts)
}

// The combinations that servers and middleware have.
type (
	flushWriter struct {
		*writer
		flush
	}
	hijackWriter struct {
		*writer
		hijack
	}
	flushHijackWriter struct {
		*writer
		flush
		hijack
	}
	pushWriter struct {
		*writer
		push
	}
	http1Writer struct {
		*writer
		flush
		hijack
		notify
	}
	http2Writer struct {
		*writer
		flush
		notify
		push
	}
)

// facade returns the writer with the methods that the one below it has.
func (w *writer) facade() http.ResponseWriter {
	_, flushes := w.inner.(http.Flusher)
	_, hijacks := w.inner.(http.Hijacker)
	_, pushes := w.inner.(http.Pusher)
	//lint:ignore SA1019 frameworks still ask for it
	_, notifies := w.inner.(http.CloseNotifier)
	switch {
	case flushes && hijacks && notifies:
		w.http1 = http1Writer{w, flush{w}, hijack{w}, notify{w}}
		return &w.http1
	case flushes && notifies && pushes:
		return &http2Writer{w, flush{w}, notify{w}, push{w}}
	case flushes && hijacks:
		return flushHijackWriter{w, flush{w}, hijack{w}}
	case flushes:
		return flushWriter{w, flush{w}}
	case hijacks:
		return hijackWriter{w, hijack{w}}
	case pushes:
		return pushWriter{w, push{w}}
	}
	return w
}

// writerOf returns the writer behind what facade has returned, or nil for others.
func writerOf(w http.ResponseWriter) *writer {
	if f, ok := w.(interface{ exchangeWriter() *writer }); ok {
		return f.exchangeWriter()
	}
	return nil
}

func (w *writer) exchangeWriter() *writer { return w }
