package ratehttp_test

import (
	"bufio"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rategen/rategen/runtime/ratehttp"
)

// The writers that servers and middleware have, by what else they can do.
type (
	bare   struct{ http.ResponseWriter }
	canF   struct{ bare }
	canH   struct{ bare }
	canFH  struct{ canF }
	canP   struct{ bare }
	canFNP struct{ canF }
)

func (canF) Flush()                                        {}
func (canH) Hijack() (net.Conn, *bufio.ReadWriter, error)  { return nil, nil, errSecret }
func (canFH) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, errSecret }
func (canP) Push(string, *http.PushOptions) error          { return errSecret }
func (canFNP) Push(string, *http.PushOptions) error        { return errSecret }
func (canFNP) CloseNotify() <-chan bool                    { return nil }

// A handler finds the methods that the server's writer has, and no others.
func TestWriterMethods(t *testing.T) {
	can := func(w http.ResponseWriter) (methods string) {
		if _, ok := w.(http.Flusher); ok {
			methods += "F"
		}
		if h, ok := w.(http.Hijacker); ok {
			if _, _, err := h.Hijack(); err != errSecret {
				t.Error(err)
			}
			methods += "H"
		}
		if p, ok := w.(http.Pusher); ok {
			if err := p.Push("/", nil); err != errSecret {
				t.Error(err)
			}
			methods += "P"
		}
		return methods
	}
	for _, inner := range []func(bare) http.ResponseWriter{
		func(b bare) http.ResponseWriter { return b },
		func(b bare) http.ResponseWriter { return canF{b} },
		func(b bare) http.ResponseWriter { return canH{b} },
		func(b bare) http.ResponseWriter { return canFH{canF{b}} },
		func(b bare) http.ResponseWriter { return canP{b} },
		func(b bare) http.ResponseWriter { return canFNP{canF{b}} },
	} {
		below := inner(bare{httptest.NewRecorder()})
		ratehttp.Middleware()(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if got, want := can(w), can(below); got != want {
				t.Errorf("%T has %q, and what is above it %q", below, want, got)
			}
			if err := http.NewResponseController(w).Flush(); (err == nil) != strings.Contains(can(below), "F") {
				t.Errorf("%T: %v", below, err)
			}
		})).ServeHTTP(below, httptest.NewRequest(http.MethodGet, "/", nil))
	}
}
