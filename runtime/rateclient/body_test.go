package rateclient_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rateclient"
)

// A stalled body gives what it has, and then nothing until it is closed.
type stalled struct {
	io.Reader
	closed chan struct{}
	once   sync.Once
}

func stall(text string) *stalled {
	return &stalled{Reader: strings.NewReader(text), closed: make(chan struct{})}
}

func (s *stalled) Read(b []byte) (int, error) {
	if n, _ := s.Reader.Read(b); n > 0 {
		return n, nil
	}
	<-s.closed
	return 0, errors.New("closed")
}

func (s *stalled) Close() error { s.once.Do(func() { close(s.closed) }); return nil }

// sends returns a Transport whose peer gives answers with a body, and takes down what the
// function of its Body gets.
func sends(t testing.TB, peer rateclient.Peer, response func() *http.Response) *rateclient.Transport {
	t.Helper()
	peer.Pattern, peer.Limits = "a.test/", perSecond(1000)
	limiter := runtime.New(runtime.NewMemoryStore(), runtime.WithLogger(slog.New(slog.DiscardHandler)))
	t.Cleanup(func() { _ = limiter.Close() })
	transport, err := rateclient.New(limiter, []rateclient.Peer{peer}, rateclient.WithLogger(slog.New(slog.DiscardHandler)),
		rateclient.WithNext(roundTripper(func(r *http.Request) (*http.Response, error) { return response(), nil })))
	limittest.OK(t, err)
	return transport
}

// TestStalledRefusal wants a refusal whose body never comes to delay nobody for long, and no
// goroutine to be left behind.
func TestStalledRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := 0
		transport := sends(t, rateclient.Peer{Retries: 3, Wait: 2 * time.Second}, func() *http.Response {
			sent++
			return &http.Response{StatusCode: 429, Header: http.Header{"Retry-After": {"0.1"}}, Body: stall(""), ContentLength: 10}
		})
		start := time.Now()
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://a.test/", nil)
		response, err := transport.RoundTrip(r)
		limittest.OK(t, err)
		if took := time.Since(start); took > 4*time.Second || response.StatusCode != 429 || sent < 2 {
			t.Errorf("%d after %v, sent %d times", response.StatusCode, took, sent)
		}
		_ = response.Body.Close()
		synctest.Wait()
	})
}

// TestBody wants the function of a Body to get what there is in time, and the caller to get all
// of it, as it was.
func TestBody(t *testing.T) {
	long := bytes.Repeat([]byte("0123456789"), 10_000)
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		status int
		body   func() io.ReadCloser
		length int64
		seen   int // bytes; -1: it is not called
		want   string
		err    error
	}{
		"short":    {429, func() io.ReadCloser { return io.NopCloser(strings.NewReader("text")) }, 4, 4, "text", nil},
		"long":     {429, func() io.ReadCloser { return io.NopCloser(bytes.NewReader(long)) }, -1, 64 << 10, string(long), nil},
		"one byte": {429, func() io.ReadCloser { return io.NopCloser(iotest.OneByteReader(strings.NewReader("text"))) }, -1, 4, "text", nil},
		"with EOF": {429, func() io.ReadCloser { return io.NopCloser(iotest.DataErrReader(strings.NewReader("text"))) }, -1, 4, "text", nil},
		"empty":    {429, func() io.ReadCloser { return io.NopCloser(strings.NewReader("")) }, 0, -1, "", nil},
		"no body":  {429, func() io.ReadCloser { return http.NoBody }, 0, -1, "", nil},
		"broken": {429, func() io.ReadCloser {
			return io.NopCloser(io.MultiReader(strings.NewReader("te"), iotest.ErrReader(broken)))
		}, -1, 2, "te", broken},
		"other":     {200, func() io.ReadCloser { return io.NopCloser(strings.NewReader("text")) }, 4, -1, "text", nil},
		"too large": {429, func() io.ReadCloser { return io.NopCloser(io.LimitReader(rand.NewChaCha8([32]byte{}), 1<<20)) }, -1, 64 << 10, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				seen := -1
				peer := rateclient.Peer{Body: rateclient.Body{Statuses: []int{429}, Read: func(a *rateclient.Answer, body []byte) {
					seen = len(body)
					if a.Status != c.status || !a.Refused {
						t.Errorf("answer %+v", a)
					}
				}}}
				transport := sends(t, peer, func() *http.Response {
					return &http.Response{StatusCode: c.status, Header: http.Header{}, Body: c.body(), ContentLength: c.length}
				})
				r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://a.test/", nil)
				response, err := transport.RoundTrip(r)
				limittest.OK(t, err)
				text, err := io.ReadAll(response.Body)
				if !errors.Is(err, c.err) || seen != c.seen || c.want != "" && string(text) != c.want || response.ContentLength != c.length {
					t.Errorf("%d bytes were seen, want %d; read %d bytes, %v", seen, c.seen, len(text), err)
				}
				if name == "too large" && len(text) != 1<<20 {
					t.Errorf("%d bytes", len(text))
				}
			})
		})
	}
}

// TestBodyIsLate wants an answer to be returned after a second, and its body to be whole when it
// has come.
func TestBodyIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader, writer := io.Pipe()
		peer := rateclient.Peer{Body: rateclient.Body{Statuses: []int{429}, Read: func(*rateclient.Answer, []byte) { t.Error("read") }}}
		transport := sends(t, peer, func() *http.Response {
			return &http.Response{StatusCode: 429, Header: http.Header{}, Body: reader, ContentLength: -1}
		})
		go func() {
			for _, text := range []string{"a ", "late ", "body"} {
				_, _ = writer.Write([]byte(text))
				time.Sleep(700 * time.Millisecond)
			}
			_ = writer.Close()
		}()
		start := time.Now()
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://a.test/", nil)
		response, err := transport.RoundTrip(r)
		if took := time.Since(start); err != nil || took != time.Second {
			t.Fatalf("%v after %v", err, took)
		}
		if text, err := io.ReadAll(response.Body); string(text) != "a late body" || err != nil {
			t.Errorf("%q %v", text, err)
		}
	})
}

// TestBodyMisused wants a function that panics, or says nonsense, to do no harm.
func TestBodyMisused(t *testing.T) {
	for name, read := range map[string]func(a *rateclient.Answer, body []byte){
		"panics": func(a *rateclient.Answer, _ []byte) { a.Refused, a.HoldOff = true, time.Hour; panic("x") },
		"forever": func(a *rateclient.Answer, _ []byte) {
			a.HoldOff = -time.Hour
			a.Quotas = make([]rateclient.Quota, 1000)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				transport := sends(t, rateclient.Peer{Body: rateclient.Body{Statuses: []int{200}, Read: read}}, func() *http.Response {
					return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("x")), ContentLength: 1}
				})
				for range 3 {
					if status, err := get(t.Context(), transport, "http://a.test/"); status != 200 || err != nil {
						t.Fatal(status, err)
					}
				}
			})
		})
	}
	for _, body := range []rateclient.Body{{Statuses: []int{429}}, {Read: func(*rateclient.Answer, []byte) {}}} {
		_, err := rateclient.New(runtime.New(runtime.NewMemoryStore()), []rateclient.Peer{{Pattern: "a.test/", Limits: perSecond(1), Body: body}})
		if err == nil || !strings.Contains(err.Error(), "set both") {
			t.Errorf("%v", err)
		}
	}
}
