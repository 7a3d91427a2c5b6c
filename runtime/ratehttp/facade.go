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
	conn, buffer, err := http.NewResponseController(h.w.inner).Hijack()
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

// An http1Writer is what a server of HTTP/1 gives.
type http1Writer struct {
	*writer
	flush
	hijack
	notify
}

// facade returns the writer with the methods that the one below it has. It can be hijacked
// if any writer of the chain below can, since [http.ResponseController] goes along it, and
// the writer would not know.
func (w *writer) facade() http.ResponseWriter {
	const flushes, hijacks, notifies, pushes = 1, 2, 4, 8
	can := 0
	if _, ok := w.inner.(http.Flusher); ok {
		can |= flushes
	}
	if hijackable(w.inner) {
		can |= hijacks
	}
	//lint:ignore SA1019 frameworks still ask for it
	if _, ok := w.inner.(http.CloseNotifier); ok {
		can |= notifies
	}
	if _, ok := w.inner.(http.Pusher); ok {
		can |= pushes
	}
	f, h, n, p := flush{w}, hijack{w}, notify{w}, push{w}
	switch can {
	case flushes | hijacks | notifies:
		w.http1 = http1Writer{w, f, h, n}
		return &w.http1
	case flushes:
		return struct {
			*writer
			flush
		}{w, f}
	case hijacks:
		return struct {
			*writer
			hijack
		}{w, h}
	case notifies:
		return struct {
			*writer
			notify
		}{w, n}
	case pushes:
		return struct {
			*writer
			push
		}{w, p}
	case flushes | hijacks:
		return struct {
			*writer
			flush
			hijack
		}{w, f, h}
	case flushes | notifies:
		return struct {
			*writer
			flush
			notify
		}{w, f, n}
	case flushes | pushes:
		return struct {
			*writer
			flush
			push
		}{w, f, p}
	case hijacks | notifies:
		return struct {
			*writer
			hijack
			notify
		}{w, h, n}
	case hijacks | pushes:
		return struct {
			*writer
			hijack
			push
		}{w, h, p}
	case notifies | pushes:
		return struct {
			*writer
			notify
			push
		}{w, n, p}
	case flushes | hijacks | pushes:
		return struct {
			*writer
			flush
			hijack
			push
		}{w, f, h, p}
	case flushes | notifies | pushes: // HTTP/2
		return struct {
			*writer
			flush
			notify
			push
		}{w, f, n, p}
	case hijacks | notifies | pushes:
		return struct {
			*writer
			hijack
			notify
			push
		}{w, h, n, p}
	case flushes | hijacks | notifies | pushes:
		return struct {
			*writer
			flush
			hijack
			notify
			push
		}{w, f, h, n, p}
	}
	return w
}

// hijackable reports whether a writer of a chain can be hijacked.
func hijackable(w http.ResponseWriter) bool {
	for {
		if _, ok := w.(http.Hijacker); ok {
			return true
		}
		layer, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return false
		}
		w = layer.Unwrap()
	}
}

// writerOf returns the writer behind what facade has returned, or nil for others.
func writerOf(w http.ResponseWriter) *writer {
	if f, ok := w.(interface{ exchangeWriter() *writer }); ok {
		return f.exchangeWriter()
	}
	return nil
}

func (w *writer) exchangeWriter() *writer { return w }
