package ratehttp_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rategen/rategen/runtime/ratehttp"
)

// What writers can do beside writing.
type (
	bare struct{ http.ResponseWriter }
	canF struct{}
	canH struct{}
	canN struct{}
	canP struct{}
	over struct{ bare } // a layer that has Unwrap alone
)

func (canF) Flush()                                       {}
func (canH) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, errSecret }
func (canN) CloseNotify() <-chan bool                     { return nil }
func (canP) Push(string, *http.PushOptions) error         { return errSecret }
func (o over) Unwrap() http.ResponseWriter                { return o.bare.ResponseWriter }

// can returns what a writer can do.
func can(t *testing.T, w http.ResponseWriter) (methods string) {
	if _, ok := w.(http.Flusher); ok {
		methods += "F"
	}
	if h, ok := w.(http.Hijacker); ok {
		if _, _, err := h.Hijack(); err != errSecret {
			t.Error(err)
		}
		methods += "H"
	}
	if n, ok := w.(interface{ CloseNotify() <-chan bool }); ok {
		n.CloseNotify()
		methods += "N"
	}
	if p, ok := w.(http.Pusher); ok {
		if err := p.Push("/", nil); err != errSecret {
			t.Error(err)
		}
		methods += "P"
	}
	return methods
}

// A handler finds the methods that the writer below has, and no others: a connection can be
// hijacked if any writer of the chain below can, as [http.ResponseController] has it.
func TestWriterMethods(t *testing.T) {
	b := bare{httptest.NewRecorder()}
	var f canF
	var h canH
	var n canN
	var p canP
	type B = bare
	writers := []http.ResponseWriter{
		b,
		struct {
			B
			canF
		}{b, f},
		struct {
			B
			canH
		}{b, h},
		struct {
			B
			canF
			canH
		}{b, f, h},
		struct {
			B
			canN
		}{b, n},
		struct {
			B
			canF
			canN
		}{b, f, n},
		struct {
			B
			canH
			canN
		}{b, h, n},
		struct {
			B
			canF
			canH
			canN
		}{b, f, h, n},
		struct {
			B
			canP
		}{b, p},
		struct {
			B
			canF
			canP
		}{b, f, p},
		struct {
			B
			canH
			canP
		}{b, h, p},
		struct {
			B
			canF
			canH
			canP
		}{b, f, h, p},
		struct {
			B
			canN
			canP
		}{b, n, p},
		struct {
			B
			canF
			canN
			canP
		}{b, f, n, p},
		struct {
			B
			canH
			canN
			canP
		}{b, h, n, p},
		struct {
			B
			canF
			canH
			canN
			canP
		}{b, f, h, n, p},
	}
	for i, below := range writers {
		if want := []string{"", "F", "H", "FH", "N", "FN", "HN", "FHN"}[i%8] + []string{"", "P"}[i/8]; can(t, below) != want {
			t.Fatalf("the writer for %q can do %q", want, can(t, below))
		}
		for _, layer := range []bool{false, true} {
			inner, want := below, can(t, below)
			if layer {
				inner = over{bare{below}}
				want = ""
				if i&2 != 0 {
					want = "H"
				}
			}
			ratehttp.Middleware()(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if got := can(t, w); got != want {
					t.Errorf("behind a layer %t, %q is below and %q above", layer, can(t, below), got)
				}
				if err := http.NewResponseController(w).Flush(); (err == nil) != (i&1 != 0) {
					t.Errorf("%q: %v", can(t, below), err)
				}
				if _, _, err := http.NewResponseController(w).Hijack(); (err == errSecret) != (i&2 != 0) {
					t.Errorf("%q: %v", can(t, below), err)
				}
				_, _ = io.Copy(w, strings.NewReader("ok"))
			})).ServeHTTP(inner, httptest.NewRequest(http.MethodGet, "/", nil))
		}
	}
}
