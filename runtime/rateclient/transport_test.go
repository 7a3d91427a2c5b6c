package rateclient_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rateclient"
)

// A service answers requests in this process. It is a RoundTripper that looks whether
// bodies are closed.
type service struct {
	answer func(r *http.Request) (status int, fields map[string]string)

	mu       sync.Mutex
	arrivals []time.Time
	order    []string
	unclosed atomic.Int64
}

type body struct {
	io.Reader
	open *atomic.Int64
	once sync.Once
}

func (b *body) Close() error { b.once.Do(func() { b.open.Add(-1) }); return nil }

func (s *service) body(text string) *body {
	s.unclosed.Add(1)
	return &body{Reader: strings.NewReader(text), open: &s.unclosed}
}

func (s *service) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
	s.mu.Lock()
	s.arrivals = append(s.arrivals, time.Now())
	s.order = append(s.order, r.URL.RawQuery)
	s.mu.Unlock()
	status, fields := 200, map[string]string(nil)
	if s.answer != nil {
		status, fields = s.answer(r)
	}
	h := http.Header{}
	for name, value := range fields {
		h.Set(name, value)
	}
	return &http.Response{StatusCode: status, Header: h, Body: s.body("answer"), ContentLength: 6, Request: r}, nil
}

func newTransport(t testing.TB, s *service, store runtime.Store, peer rateclient.Peer, opts ...runtime.Option) *rateclient.Transport {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	limiter := runtime.New(store, append(opts, runtime.WithLogger(quiet))...)
	t.Cleanup(func() { _ = limiter.Close() })
	transport, err := rateclient.New(limiter, []rateclient.Peer{peer}, rateclient.WithNext(s), rateclient.WithLogger(quiet))
	limittest.OK(t, err)
	return transport
}

// get sends a request and returns its status, or 0 and the error.
func get(ctx context.Context, rt http.RoundTripper, url string) (int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	response, err := rt.RoundTrip(r)
	if err != nil {
		return 0, err
	}
	_ = response.Body.Close()
	return response.StatusCode, nil
}

// ask has callers send until a context ends.
func ask(ctx context.Context, wg *sync.WaitGroup, callers int, rt http.RoundTripper) {
	for range callers {
		wg.Go(func() {
			for ctx.Err() == nil {
				_, _ = get(ctx, rt, "http://a.test/")
			}
		})
	}
}

func perSecond(max int64) []rateclient.PeerLimit {
	return []rateclient.PeerLimit{{Rule: runtime.Rule{Name: "peer", Window: time.Second, Max: max}, Margin: -1}}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (t roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }
