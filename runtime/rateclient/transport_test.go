package rateclient_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/internal/testkit/strictpeer"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rateclient"
	"github.com/rategen/rategen/runtime/rule"
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

func (s *service) seen() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.arrivals)
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

func perSecond(max int64) []rateclient.PeerLimit {
	return []rateclient.PeerLimit{{Rule: runtime.Rule{Name: "peer", Window: time.Second, Max: max}, Margin: -1}}
}

// TestHeld wants one refusal to hold back all replicas, for as long as the peer says and
// the program allows, and calls to go on evenly from the time when there is room, also if
// the limit was full.
func TestHeld(t *testing.T) {
	const max, window, hold = 100, 10 * time.Second, 2 * time.Second
	for _, c := range []struct {
		before        int
		begin, margin time.Duration
	}{{0, hold, -1}, {max - 1, window, -1}, {0, hold, window / 4}} {
		t.Run(fmt.Sprint(c.before, " before, margin ", c.margin), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := runtime.NewMemoryStore() // which the replicas share
				refuse := atomic.Bool{}
				s := &service{answer: func(*http.Request) (int, map[string]string) {
					if refuse.Swap(false) {
						return 429, map[string]string{"Retry-After": "2"}
					}
					return 200, nil
				}}
				var replicas []*rateclient.Transport
				var held []observe.HoldEvent
				var refused, waiting, waited atomic.Int64
				observer := &observe.Observer{
					Hold:        func(_ context.Context, ev observe.HoldEvent) { held = append(held, ev) },
					PeerRefused: func(context.Context, observe.PeerRefusedEvent) { refused.Add(1) },
					Wait: func(_ context.Context, ev observe.WaitEvent) {
						if ev.Waiting {
							waiting.Add(1)
							return
						}
						waiting.Add(-1)
						if ev.Admitted && ev.Rule == "peer" && ev.Waited >= hold {
							waited.Add(1)
						}
					},
				}
				limits := []rateclient.PeerLimit{{Rule: runtime.Rule{Name: "peer", Window: window, Max: max}, Margin: c.margin}}
				for range 8 {
					replicas = append(replicas, newTransport(t, s, store, rateclient.Peer{Pattern: "a.test/", Limits: limits, Wait: time.Hour},
						runtime.WithObserver(observer)))
				}
				for range c.before {
					if status, err := get(t.Context(), replicas[0], "http://a.test/"); status != 200 || err != nil {
						t.Fatal(status, err)
					}
				}
				refuse.Store(true)
				start := time.Now()
				if status, err := get(t.Context(), replicas[0], "http://a.test/"); status != 429 || err != nil {
					t.Fatal(status, err)
				}
				var wg sync.WaitGroup
				for i := range 4 * max {
					wg.Go(func() {
						if status, err := get(t.Context(), replicas[i%8], "http://a.test/"); status != 200 || err != nil {
							t.Error(status, err)
						}
					})
				}
				wg.Wait()
				if want := (observe.HoldEvent{Rule: "peer", For: hold}); len(held) != 1 || held[0] != want || refused.Load() != 1 {
					t.Errorf("events %+v, %d refusals by the peer", held, refused.Load())
				}
				if waiting.Load() != 0 || waited.Load() != 4*max {
					t.Errorf("%d have waited, and %d wait at the end", waited.Load(), waiting.Load())
				}
				parts := make([]int, 30) // tenths of the windows from the time when there is room
				for _, at := range s.arrivals[c.before+1:] {
					after := at.Sub(start) - c.begin
					if after < 0 {
						t.Fatalf("a call was sent %v before the end", -after)
					}
					if part := int(after * 10 / window); part < len(parts) {
						parts[part]++
					}
				}
				for i, n := range parts {
					if n < 7 || n > 13 {
						t.Errorf("the %d. tenth of a window has %d calls, want about 10, or 8: %v", i+1, n, parts)
					}
				}
			})
		})
	}
}

// TestPeerHalves wants a peer that halves its limit while replicas run to refuse each of
// them once at most.
func TestPeerHalves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const replicas = 8
		p := &strictpeer.Peer{Max: 40, Window: time.Second, Admits: strictpeer.Rolling}
		refused := make([]int, replicas)
		store, began := runtime.NewMemoryStore(), time.Now()
		var wg sync.WaitGroup
		for i := range replicas {
			s := &service{answer: func(*http.Request) (int, map[string]string) {
				if time.Since(began) >= 5*time.Second {
					p.SetMax(20)
				}
				most, _ := p.Limit()
				fields := map[string]string{"RateLimit-Policy": fmt.Sprintf(`"a";q=%d;w=1`, most), "Retry-After": "1"}
				if _, ok := p.Arrive(); !ok {
					refused[i]++
					return 429, fields
				}
				return 200, fields
			}}
			limits := perSecond(40)
			limits[0].Least, limits[0].Most = 1, 40
			transport := newTransport(t, s, store, rateclient.Peer{Pattern: "a.test/", Limits: limits, Wait: time.Hour})
			wg.Go(func() {
				for time.Since(began) < 20*time.Second {
					if _, err := get(t.Context(), transport, "http://a.test/"); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if slices.Max(refused) > 1 { // none is, if a request that was served has told of it first
			t.Errorf("the replicas were refused %v times", refused)
		}
		if served, _ := p.Seen(); len(served) < 5*40+12*20 {
			t.Errorf("%d requests were served", len(served))
		}
	})
}

// BenchmarkRoundTrip compares an admitted request with one that is sent without limits.
func BenchmarkRoundTrip(b *testing.B) {
	next := roundTripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/plain"}}, Body: http.NoBody, Request: r}, nil
	})
	limiter := runtime.New(runtime.NewMemoryStore())
	limits := perSecond(rule.MaxCount)
	limits[0].Rule.Algorithm, limits[0].Key = runtime.TokenBucket, rateclient.Host
	transport, err := rateclient.New(limiter, []rateclient.Peer{{Pattern: "a.test/", Limits: limits, Wait: time.Second}}, rateclient.WithNext(next))
	if err != nil {
		b.Fatal(err)
	}
	for name, url := range map[string]string{"limited": "http://a.test/v1", "not limited": "http://b.test/v1"} {
		b.Run(name, func(b *testing.B) {
			r, _ := http.NewRequest("GET", url, nil)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := transport.RoundTrip(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (t roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }
