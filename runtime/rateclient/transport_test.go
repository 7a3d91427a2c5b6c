package rateclient_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
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

// TestPatterns sends requests to the limits of the most specific pattern, and others as
// they are.
func TestPatterns(t *testing.T) {
	t.Parallel()
	limiter := runtime.New(runtime.NewMemoryStore())
	peer := func(pattern string) rateclient.Peer {
		return rateclient.Peer{Pattern: pattern, Limits: []rateclient.PeerLimit{{
			Rule: runtime.Rule{Name: pattern, Window: time.Hour, Max: 1}, Key: func(r *http.Request, k *runtime.Key) {
				rateclient.Host(r, k)
				rateclient.Credential(r, k)
			}}}}
	}
	s := new(service)
	transport, err := rateclient.New(limiter, []rateclient.Peer{
		peer("a.test/"), peer("POST a.test/v1/"), peer("a.test/v2/{model}/chat"), peer("/everywhere"),
	}, rateclient.WithNext(s))
	limittest.OK(t, err)
	for _, c := range []struct{ method, url, host, token, rule string }{
		{"GET", "http://a.test/", "", "", "a.test/"},
		{"GET", "https://A.test:8443", "", "", "a.test/"}, // the same host
		{"GET", "http://a.test/v1/x", "", "", "a.test/"},
		{"GET", "http://a.test/", "", "other", ""}, // another credential
		{"GET", "http://10.0.0.1/", "a.test", "", "a.test/"},
		{"POST", "http://a.test/v1/x", "", "", ""},
		{"POST", "http://a.test/v1/y", "", "", "POST a.test/v1/"},
		{"GET", "http://a.test/v2/m/chat", "", "", ""},
		{"GET", "http://a.test/v2/n/chat", "", "", "a.test/v2/{model}/chat"},
		{"GET", "http://b.test/", "", "", ""},
		{"GET", "http://b.test/", "", "", ""},
		{"GET", "http://b.test/everywhere", "", "", ""},
		{"GET", "http://c.test/everywhere", "", "", ""}, // another host
		{"GET", "http://c.test/everywhere", "", "", "/everywhere"},
	} {
		if c.url == "http://a.test/" && c.token == "" && c.host == "" {
			c.rule = ""
		}
		r, _ := http.NewRequest(c.method, c.url, nil)
		r.Host = c.host
		r.Header.Set("Authorization", c.token)
		_, err := transport.RoundTrip(r)
		var limited *runtime.LimitedError
		errors.As(err, &limited)
		if c.rule == "" && err != nil || c.rule != "" && (limited == nil || limited.Rule != c.rule) {
			t.Errorf("%s %s (%s): %v, want refused by %q", c.method, c.url, c.host, err, c.rule)
		}
	}
}

// TestBadPeers wants an error of New to name what is wrong.
func TestBadPeers(t *testing.T) {
	t.Parallel()
	ok := func() rateclient.Peer {
		return rateclient.Peer{Pattern: "a.test/", Limits: []rateclient.PeerLimit{{Rule: runtime.Rule{Name: "a", Window: time.Second, Max: 1}}}}
	}
	for want, change := range map[string]func(*rateclient.Peer){
		"parsing":             func(p *rateclient.Peer) { p.Pattern = "a.test" },
		"it has 0 limits":     func(p *rateclient.Peer) { p.Limits = nil },
		"it has 8 limits":     func(p *rateclient.Peer) { p.Limits = slices.Repeat(p.Limits, rule.MaxLimits) },
		"Wait":                func(p *rateclient.Peer) { p.Wait = -1 },
		"status 200 cannot":   func(p *rateclient.Peer) { p.Refusals = []int{429, 200} },
		"MaxHold":             func(p *rateclient.Peer) { p.MaxHold = math.MaxInt64 },
		"no Name":             func(p *rateclient.Peer) { p.Limits[0].Rule.Name = "" },
		"has a Wait":          func(p *rateclient.Peer) { p.Limits[0].Rule.Wait = 1 },
		"or is a concurrency": func(p *rateclient.Peer) { p.Limits[0].Rule.Algorithm = runtime.Concurrency },
		"admits 0 in 1s":      func(p *rateclient.Peer) { p.Limits[0].Rule.Max = 0 },
		"admits 1 in 1ns":     func(p *rateclient.Peer) { p.Limits[0].Rule.Window = 1 },
		"margin 2s":           func(p *rateclient.Peer) { p.Limits[0].Margin = 2 * time.Second },
		"does not count events": func(p *rateclient.Peer) {
			p.Limits[0].Rule.Algorithm, p.Limits[0].Share = runtime.TokenBucket, func(*http.Request) float64 { return 1 }
		},
		"Least must be above 0": func(p *rateclient.Peer) { p.Limits[0].Most = 9 },
	} {
		p := ok()
		change(&p)
		if _, err := rateclient.New(runtime.New(nil), []rateclient.Peer{p}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if _, err := rateclient.New(runtime.New(nil), []rateclient.Peer{ok(), ok()}); err == nil || !strings.Contains(err.Error(), "conflicts") {
		t.Errorf("twice the same pattern: %v", err)
	}
}

// TestWaitsInOrder wants requests of a process to be sent in the order of their arrival,
// as soon as there is room.
func TestWaitsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(service)
		var waiting atomic.Int64
		transport := newTransport(t, s, runtime.NewMemoryStore(), rateclient.Peer{Pattern: "a.test/", Limits: perSecond(5), Wait: time.Minute},
			runtime.WithObserver(&observe.Observer{Wait: func(_ context.Context, ev observe.WaitEvent) {
				waiting.Add(-1)
				if ev.Waiting {
					waiting.Add(2)
				}
			}}))
		start := time.Now()
		var wg sync.WaitGroup
		for i := range 23 {
			wg.Go(func() {
				if _, err := get(t.Context(), transport, fmt.Sprintf("http://a.test/?%02d", i)); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
			if i < 4 {
				time.Sleep(100 * time.Millisecond) // and so leaves the window, each by itself
			}
		}
		if n := waiting.Load(); n != 18 {
			t.Errorf("%d wait, want 18", n)
		}
		wg.Wait()
		if !slices.IsSorted(s.order) {
			t.Errorf("sent in the order %v", s.order)
		}
		for i, at := range s.arrivals {
			if want := time.Duration(i/5)*time.Second + time.Duration(i%5)*100*time.Millisecond; at.Sub(start) < want || at.Sub(start) > want+time.Millisecond {
				t.Errorf("request %d was sent after %v, want %v", i, at.Sub(start), want)
			}
		}
		if n := waiting.Load(); n != 0 {
			t.Errorf("%d wait at the end", n)
		}
	})
}

// TestWaitIsBounded wants a request that would have to wait for too long not to, with
// the time that it would take and its body closed, and those behind one that gives up to
// move up.
func TestWaitIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(service)
		limits := []rateclient.PeerLimit{{Rule: runtime.Rule{Name: "peer", Window: 10 * time.Second, Max: 1}, Margin: -1}}
		transport := newTransport(t, s, runtime.NewMemoryStore(), rateclient.Peer{Pattern: "a.test/", Limits: limits, Wait: 15 * time.Second})
		post := func(ctx context.Context) error {
			r, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://a.test/", s.body("x"))
			response, err := transport.RoundTrip(r)
			if err == nil {
				_ = response.Body.Close()
			}
			return err
		}
		start := time.Now()
		limittest.OK(t, post(t.Context()))
		short, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		var limited *runtime.LimitedError
		if err := post(short); !errors.As(err, &limited) || limited.RetryAfter != 10*time.Second || time.Since(start) != 0 {
			t.Errorf("a deadline before its turn: %v after %v", err, time.Since(start))
		}
		canceled, cancel := context.WithCancel(t.Context())
		errs := make([]error, 4)
		var wg sync.WaitGroup
		for i, ctx := range []context.Context{canceled, t.Context(), t.Context(), t.Context()} {
			wg.Go(func() { errs[i] = post(ctx) })
			synctest.Wait()
		}
		time.Sleep(time.Second)
		cancel()
		wg.Wait()
		if !errors.Is(errs[0], context.Canceled) {
			t.Errorf("canceled: %v", errs[0])
		}
		if errs[1] != nil {
			t.Errorf("the next one: %v", errs[1])
		}
		for _, err := range errs[2:] { // until 20 s and 30 s
			if !errors.As(err, &limited) || limited.RetryAfter < 5*time.Second {
				t.Errorf("too late: %v", err)
			}
		}
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("it was known after 10s who is too late, and took %v", took)
		}
		if n := s.unclosed.Load(); n != 0 {
			t.Errorf("%d bodies are open", n)
		}
	})
}

// TestHoldWhileWaiting wants those who wait to fail as soon as a hold of another replica is
// known to last too long for them, and others to go on once it is released.
func TestHoldWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, store := new(service), runtime.NewMemoryStore()
		limits := []rateclient.PeerLimit{{Rule: runtime.Rule{Name: "peer", Window: 10 * time.Second, Max: 1}, Margin: -1}}
		transport := newTransport(t, s, store, rateclient.Peer{Pattern: "a.test/", Limits: limits, Wait: time.Hour})
		if _, err := get(t.Context(), transport, "http://a.test/"); err != nil {
			t.Fatal(err)
		}
		start, done := time.Now(), [3]time.Duration{}
		var errs [3]error
		var wg sync.WaitGroup
		for i, d := range []time.Duration{time.Hour, 30 * time.Second, time.Hour} {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), d)
				defer cancel()
				_, errs[i] = get(ctx, transport, "http://a.test/")
				done[i] = time.Since(start)
			})
			synctest.Wait()
		}
		other, rule := runtime.New(store), limits[0].Rule
		rule.Hold = true
		time.Sleep(500 * time.Millisecond)
		limittest.OK(t, other.Hold(t.Context(), rule.Limit(nil), 10*time.Minute))
		time.Sleep(time.Minute)
		limittest.OK(t, other.Release(t.Context(), rule.Limit(nil)))
		wg.Wait()
		var limited *runtime.LimitedError
		if !errors.As(errs[1], &limited) || limited.RetryAfter < 9*time.Minute || done[1] > 2*time.Second {
			t.Errorf("too late: %v after %v", errs[1], done[1])
		}
		if errs[0] != nil || errs[2] != nil || done[0] < time.Minute || done[0] > 62*time.Second || done[2] > 75*time.Second {
			t.Errorf("released after a minute: %v, %v after %v, %v", errs[0], errs[2], done[0], done[2])
		}
	})
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

// TestHeldInLongWindow wants calls to go on evenly for a minute, or as long as the hold was,
// and not for the day of a quota.
func TestHeldInLongWindow(t *testing.T) {
	for hold, evenly := range map[time.Duration]time.Duration{time.Second: time.Minute, 10 * time.Minute: 10 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			refuse := true
			s := &service{answer: func(*http.Request) (int, map[string]string) {
				if refuse {
					refuse = false
					return 429, map[string]string{"Retry-After": fmt.Sprint(hold.Seconds())}
				}
				return 200, nil
			}}
			limits := []rateclient.PeerLimit{{Rule: runtime.Rule{Name: "peer", Window: 24 * time.Hour, Max: 8640}, Margin: -1}}
			transport := newTransport(t, s, runtime.NewMemoryStore(), rateclient.Peer{Pattern: "a.test/", Limits: limits, Wait: time.Hour})
			start := time.Now()
			for range 1000 {
				if _, err := get(t.Context(), transport, "http://a.test/"); err != nil {
					t.Fatal(err)
				}
			}
			// A burst of a 64th may go at once, and then one in 10 seconds.
			if n := s.seen() - 1; n != 999 || s.arrivals[1].Sub(start) != hold || s.arrivals[200].Sub(start) < hold+evenly {
				t.Errorf("hold %v: %d calls, the first after %v and the 200th after %v", hold, n, s.arrivals[1].Sub(start), s.arrivals[200].Sub(start))
			}
			if took := time.Since(start); took > hold+evenly+11*time.Second {
				t.Errorf("hold %v: the calls took %v", hold, took)
			}
		})
	}
}

// TestUntruePeers wants what a peer says to be bounded, and never to hang calls or to
// touch other keys.
func TestUntruePeers(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		fields map[string]string
		hold   []time.Duration // of refusals in a row
	}{
		{"for ever", 429, map[string]string{"Retry-After": "999999999"}, []time.Duration{time.Hour, time.Hour}},
		{"negative", 429, map[string]string{"Retry-After": "-5"}, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}},
		{"1970", 429, map[string]string{"Retry-After": "Thu, 01 Jan 1970 00:00:00 GMT"}, []time.Duration{time.Second, 2 * time.Second}},
		{"nothing", 429, nil, []time.Duration{1e9, 2e9, 4e9, 8e9, 16e9, 32e9, 64e9, 128e9, 256e9, 512e9, 1024e9, 2048e9, time.Hour, time.Hour}},
		{"in 9999", 429, map[string]string{"Retry-After": "Fri, 31 Dec 9999 23:59:59 GMT"}, []time.Duration{time.Hour}},
		{"a number without end", 429, map[string]string{"Retry-After": strings.Repeat("9", 1000)}, []time.Duration{time.Second, 2 * time.Second}},
		{"no number", 429, map[string]string{"Retry-After": "soon", "X-RateLimit-Reset": "NaN", "RateLimit": `"a";r=-1;t=inf`}, []time.Duration{time.Second}},
		{"a reset in 1970", 429, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "Thu, 01 Jan 1970 00:00:00 GMT"}, []time.Duration{time.Second}},
		{"a reset for ever", 429, map[string]string{"RateLimit": `"a";r=0;t=1000000000`}, []time.Duration{time.Hour}},
		{"room, but refused", 429, map[string]string{"Retry-After": "0", "RateLimit": `"a";r=50;t=900`}, []time.Duration{time.Second}},
		{"a proxy's", 429, map[string]string{"Via": "1.1 proxy", "Content-Type": "text/html"}, []time.Duration{time.Second}},
		{"503 for ever", 503, map[string]string{"Retry-After": "3"}, []time.Duration{3 * time.Second, 3 * time.Second, 3 * time.Second}},
		{"503 until the end of time", 503, map[string]string{"Retry-After": "999999999"}, []time.Duration{time.Hour, time.Hour}},
		{"503, a fault", 503, nil, []time.Duration{0, 0}},
		{"contradictions", 429, map[string]string{"Retry-After": "1", "RateLimit": `"a";r=0;t=900`, "X-RateLimit-Reset": "999999999"}, []time.Duration{time.Second}},
		{"nothing is left", 200, map[string]string{"RateLimit": `"a";r=0;t=9`}, []time.Duration{9 * time.Second}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &service{answer: func(r *http.Request) (int, map[string]string) {
					if r.URL.Host != "bad.test" {
						return 200, nil
					}
					return c.status, c.fields
				}}
				limits := perSecond(100)
				limits[0].Key = rateclient.Host
				store := runtime.NewMemoryStore()
				transport := newTransport(t, s, store, rateclient.Peer{Pattern: "/", Limits: limits, Wait: 2 * time.Hour})
				last := time.Now()
				for i, want := range append([]time.Duration{0}, c.hold...) {
					if status, err := get(t.Context(), transport, "http://bad.test/"); status != c.status || err != nil {
						t.Fatal(status, err)
					}
					if waited := time.Since(last); waited != want {
						t.Fatalf("try %d was sent after %v, want %v", i, waited, want)
					}
					last = time.Now()
					if status, err := get(t.Context(), transport, "http://good.test/"); status != 200 || err != nil || time.Since(last) != 0 {
						t.Fatalf("another host: %d %v after %v", status, err, time.Since(last))
					}
				}
			})
		})
	}
}

// TestUntruePeersInLog wants a peer that refuses for ever to fill no log, and lines to tell
// nothing that the caller sent.
func TestUntruePeersInLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{answer: func(*http.Request) (int, map[string]string) { return 429, map[string]string{"Retry-After": "0.02"} }}
		limits := perSecond(1000)
		limits[0].Key = rateclient.Credential
		var log bytes.Buffer
		limiter := runtime.New(runtime.NewMemoryStore(), runtime.WithLogger(slog.New(slog.DiscardHandler)))
		defer limiter.Close()
		transport, err := rateclient.New(limiter, []rateclient.Peer{{Pattern: "a.test/", Limits: limits, Wait: time.Hour}},
			rateclient.WithNext(s), rateclient.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		limittest.OK(t, err)
		for range 500 { // 10 seconds
			r, _ := http.NewRequest(http.MethodGet, "http://a.test/private?secret=1", nil)
			r.Header.Set("Authorization", "Bearer private")
			if _, err := transport.RoundTrip(r); err != nil {
				t.Fatal(err)
			}
		}
		if lines := strings.Count(log.String(), "\n"); lines < 9 || lines > 11 {
			t.Errorf("the log has %d lines about 10 seconds:\n%s", lines, &log)
		}
		if strings.Contains(log.String(), "private") || strings.Contains(log.String(), "secret") || !strings.Contains(log.String(), "skipped=49") {
			t.Errorf("the log says:\n%s", &log)
		}
	})
}

// TestRetries sends refused requests again where that can be.
func TestRetries(t *testing.T) {
	reader := func() io.Reader { return strings.NewReader("x") }
	for _, c := range []struct {
		name     string
		request  func() (*http.Request, error)
		refusals int
		wait     time.Duration
		sent     int
		status   int
	}{
		{"GET", func() (*http.Request, error) { return http.NewRequest("GET", "http://a.test/", nil) }, 2, time.Minute, 3, 200},
		{"too often", func() (*http.Request, error) { return http.NewRequest("GET", "http://a.test/", nil) }, 9, time.Minute, 4, 429},
		{"too late", func() (*http.Request, error) { return http.NewRequest("GET", "http://a.test/", nil) }, 9, 5 * time.Second, 3, 429},
		{"PUT with a body", func() (*http.Request, error) { return http.NewRequest("PUT", "http://a.test/", reader()) }, 1, time.Minute, 2, 200},
		{"PUT with a body that is gone", func() (*http.Request, error) {
			return http.NewRequest("PUT", "http://a.test/", io.MultiReader(reader()))
		}, 1, time.Minute, 1, 429},
		{"POST", func() (*http.Request, error) { return http.NewRequest("POST", "http://a.test/", reader()) }, 1, time.Minute, 1, 429},
		{"POST with a key", func() (*http.Request, error) {
			r, err := http.NewRequest("POST", "http://a.test/", reader())
			r.Header.Set("Idempotency-Key", "1")
			return r, err
		}, 1, time.Minute, 2, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				left := c.refusals
				s := new(service)
				s.answer = func(r *http.Request) (int, map[string]string) {
					if left--; left < 0 {
						return 200, nil
					}
					return 429, map[string]string{"Retry-After": "2"}
				}
				transport := newTransport(t, s, runtime.NewMemoryStore(), rateclient.Peer{Pattern: "a.test/", Limits: perSecond(100), Wait: c.wait, Retries: 3})
				r, err := c.request()
				limittest.OK(t, err)
				start := time.Now()
				response, err := transport.RoundTrip(r)
				limittest.OK(t, err)
				text, _ := io.ReadAll(response.Body)
				_ = response.Body.Close()
				if s.seen() != c.sent || response.StatusCode != c.status || string(text) != "answer" || s.unclosed.Load() != 0 {
					t.Errorf("sent %d times, %d %q, %d bodies are open", s.seen(), response.StatusCode, text, s.unclosed.Load())
				}
				if took := time.Since(start); took != time.Duration(c.sent-1)*2*time.Second {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// TestFollows wants a limit that the peer tells of to hold: at once if it is lower, and
// slowly if it is higher, within the bounds of the program.
func TestFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := "100"
		s := &service{answer: func(*http.Request) (int, map[string]string) {
			return 200, map[string]string{"RateLimit-Policy": `"a";q=` + told + `;w=1, "b";q=3;w=60`}
		}}
		limits := perSecond(20)
		limits[0].Least, limits[0].Most = 5, 40
		transport := newTransport(t, s, runtime.NewMemoryStore(), rateclient.Peer{Pattern: "a.test/", Limits: limits})
		window := func() (n int) {
			time.Sleep(time.Second)
			for ; n < 1000; n++ {
				if _, err := get(t.Context(), transport, "http://a.test/"); err != nil {
					return n
				}
			}
			return n
		}
		for i, step := range []struct {
			told string
			want int
		}{{"20", 20}, {"10", 10}, {"10", 10}, {"1", 5}, {"1", 5}, {"100", 6}, {"100", 7}, {"100", 8}, {"6", 6}, {"0", 6}, {"-1", 6}, {"x", 6}, {"99999999999999999999", 6}} {
			told = step.told
			if got := window(); got != step.want {
				t.Errorf("step %d: the peer tells of %s, and %d were sent, want %d", i, told, got, step.want)
			}
		}
		told = "100"
		last := 0
		for range 60 {
			last = window()
		}
		if last != 40 {
			t.Errorf("in the end %d were sent, want 40", last)
		}
	})
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

// TestStoreAway wants a hold to be heeded by the process at least.
func TestStoreAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{answer: func(*http.Request) (int, map[string]string) { return 429, map[string]string{"Retry-After": "2"} }}
		var held observe.HoldEvent
		transport := newTransport(t, s, nil, rateclient.Peer{Pattern: "a.test/", Limits: perSecond(10), Wait: time.Minute},
			runtime.WithObserver(&observe.Observer{Hold: func(_ context.Context, ev observe.HoldEvent) { held = ev }}))
		start := time.Now()
		for range 3 {
			if status, err := get(t.Context(), transport, "http://a.test/"); status != 429 || err != nil {
				t.Fatal(status, err)
			}
		}
		if took := time.Since(start); took != 4*time.Second || held.Err == nil {
			t.Errorf("three calls took %v, want 4s; %v", took, held.Err)
		}
	})
}
