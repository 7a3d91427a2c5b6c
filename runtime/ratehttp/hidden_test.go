package ratehttp_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rateclient"
	"github.com/rategen/rategen/runtime/ratefield"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// recovering is middleware that answers a panic with 500.
func recovering(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if recover() != nil {
				http.Error(w, "broken", http.StatusInternalServerError)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// modes are what a middleware does about refusals that a handler hides.
var modes = map[string][]ratehttp.Option{
	"left": {ratehttp.WithHiddenRefusals()}, "default": nil, "forced": {ratehttp.WithForcedRefusals()},
}

// Whatever a handler does after a refusal: either the client is told of it, or the log and the observer
// are. An error that says nothing is overruled, and by WithForcedRefusals each error is.
func TestHiddenRefusals(t *testing.T) {
	type handler = func(w http.ResponseWriter, r *http.Request, err error)
	status := func(code int) handler {
		return func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(code) }
	}
	const hidden, served = 1, 2
	for _, c := range []struct {
		name     string
		handle   handler
		reported int            // of what the client gets, if that is not overruled
		want     map[string]int // 0: there is no answer
	}{
		{"maps every error to 500", func(w http.ResponseWriter, _ *http.Request, _ error) {
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Content-Length", "6")
			http.Error(w, "secret", http.StatusInternalServerError)
		}, hidden, map[string]int{"left": 500, "default": 429, "forced": 429}},
		{"writes nothing", func(http.ResponseWriter, *http.Request, error) {}, hidden, map[string]int{"left": 200, "default": 429, "forced": 429}},
		{"writes 400", status(400), hidden, map[string]int{"left": 400, "default": 400, "forced": 429}},
		{"writes 404", status(404), hidden, map[string]int{"left": 404, "default": 404, "forced": 429}},
		{"writes 501", status(501), hidden, map[string]int{"left": 501, "default": 501, "forced": 429}},
		{"writes 502", status(502), hidden, map[string]int{"left": 502, "default": 502, "forced": 429}},
		{"writes 504", status(504), hidden, map[string]int{"left": 504, "default": 504, "forced": 429}},
		{"sends hints, then 500", func(w http.ResponseWriter, _ *http.Request, _ error) {
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusInternalServerError)
		}, hidden, map[string]int{"left": 500, "default": 429, "forced": 429}},
		{"panics", func(_ http.ResponseWriter, _ *http.Request, err error) { panic(err) }, hidden, map[string]int{}},
		{"aborts", func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }, hidden, map[string]int{}},
		{"panics below a middleware that contains it", func(w http.ResponseWriter, r *http.Request, err error) {
			recovering(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(err) })).ServeHTTP(w, r)
		}, hidden, map[string]int{"left": 500, "default": 429, "forced": 429}},
		{"writes 500 through a writer of its own", func(w http.ResponseWriter, _ *http.Request, _ error) {
			struct{ http.ResponseWriter }{w}.WriteHeader(500)
		}, hidden, map[string]int{"left": 500, "default": 429, "forced": 429}},
		{"writes 429 by itself", status(429), 0, map[string]int{"left": 429, "default": 429, "forced": 429}},
		{"writes 503", status(503), 0, map[string]int{"left": 503, "default": 503, "forced": 503}},
		{"has something else", func(w http.ResponseWriter, _ *http.Request, _ error) { _, _ = io.WriteString(w, "cached") }, served, map[string]int{"left": 200, "default": 200, "forced": 200}},
		{"redirects", status(303), served, map[string]int{"left": 303, "default": 303, "forced": 303}},
		{"flushes, then writes 500", func(w http.ResponseWriter, _ *http.Request, _ error) {
			w.(http.Flusher).Flush()
			w.WriteHeader(500)
		}, served, map[string]int{"left": 200, "default": 200, "forced": 200}},
		{"hijacks", func(w http.ResponseWriter, _ *http.Request, _ error) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_, _ = io.WriteString(conn, "HTTP/1.1 418 I'm a teapot\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
				_ = conn.Close()
			}
		}, 0, map[string]int{"left": 418, "default": 418, "forced": 418}},
		{"answers", func(w http.ResponseWriter, r *http.Request, err error) { ratehttp.Error(w, r, err) }, 0, map[string]int{"left": 429, "default": 429, "forced": 429}},
		{"answers through a writer of its own", func(w http.ResponseWriter, r *http.Request, err error) {
			ratehttp.Error(struct{ http.ResponseWriter }{w}, r, err)
		}, 0, map[string]int{"left": 429, "default": 429, "forced": 429}},
		{"answers with a status of its own", func(w http.ResponseWriter, r *http.Request, _ error) {
			ratehttp.Deny(struct{ http.ResponseWriter }{w}, r, statusError(402))
		}, 0, map[string]int{"left": 402, "default": 402, "forced": 402}},
	} {
		for mode, opts := range modes {
			t.Run(c.name+", "+mode, func(t *testing.T) {
				var log bytes.Buffer
				var mu sync.Mutex // a handler that aborts may end after the next one has begun
				var seen []observe.HiddenEvent
				limiter := runtime.New(runtime.NewMemoryStore(), runtime.WithLogger(slog.New(slog.NewTextHandler(&log, nil))),
					runtime.WithObserver(&observe.Observer{Hidden: func(_ context.Context, ev observe.HiddenEvent) {
						mu.Lock()
						defer mu.Unlock()
						seen = append(seen, ev)
					}}))
				rule := &runtime.Rule{Name: "shop.Orders.Get", Window: time.Hour, Max: 0, Message: "no more"}
				mux := http.NewServeMux()
				mux.HandleFunc("GET /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
					_, err := limiter.Take(r.Context(), rule.Limit(nil))
					c.handle(w, r, err)
				})
				server := httptest.NewUnstartedServer(ratehttp.Middleware(opts...)(mux))
				server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
				server.Start()
				want, overruled := c.want[mode], c.reported == hidden && c.want[mode] == 429
				for range 2 {
					resp, err := http.Get(server.URL + "/orders/hxqzj")
					if err != nil {
						if want != 0 {
							t.Fatal(err)
						}
						continue
					}
					body, _ := io.ReadAll(resp.Body)
					_ = resp.Body.Close()
					if resp.StatusCode != want {
						t.Errorf("status %d, want %d", resp.StatusCode, want)
					}
					if overruled && (!strings.Contains(string(body), `"detail":"no more"`) || strings.Contains(string(body), "secret") || resp.Header.Get("Content-Type") != "application/problem+json") {
						t.Errorf("%v %s", resp.Header, body)
					}
				}
				server.Close() // all handlers have ended
				var wantSeen []observe.HiddenEvent
				if c.reported > 0 && !overruled {
					ev := observe.HiddenEvent{Rule: rule.Name, Served: c.reported == served}
					wantSeen = []observe.HiddenEvent{ev, ev}
				}
				limittest.Equal(t, "what the observer has seen", fmt.Sprint(seen), fmt.Sprint(wantSeen))
				lines := log.String()
				for part, want := range map[string]bool{"code=hidden_refusal": c.reported == hidden && !overruled, "in its place": overruled} {
					if n := strings.Count(lines, part); want != (n == 1) {
						t.Errorf("%d lines have %q:\n%s", n, part, lines)
					}
				}
				if c.reported == hidden && strings.Count(lines, `route="GET /orders/{id}"`) != 1 || strings.Contains(lines, "hxqzj") {
					t.Error(lines)
				}
			})
		}
	}
}

// Which refusals count for an answer of 500: those of clients, of peers and of no limiter do, and an
// error that is no refusal does not. Only a refusal is a finding, since a failure of the store is told anyway.
func TestRefusalsThatCount(t *testing.T) {
	limit := func(name string, max int64, change ...func(*runtime.Rule)) runtime.Limit {
		rule := &runtime.Rule{Name: name, Window: time.Hour, Max: max}
		for _, change := range change {
			change(rule)
		}
		return rule.Limit(nil)
	}
	closed := func(r *runtime.Rule) { r.Fail = runtime.FailClosed }
	broken := func(opts ...runtime.Option) *runtime.Limiter {
		return runtime.New(failing(), append(opts, runtime.WithLogger(silent))...)
	}
	for _, c := range []struct {
		name    string
		limiter func(...runtime.Option) *runtime.Limiter
		limit   runtime.Limit
		want    int
		found   bool // if it is left
	}{
		{"refused", newLimiter, limit("x", 0), 429, true},
		{"refused by a peer's limit", newLimiter, limit("x", 0, func(r *runtime.Rule) { r.Outgoing = true }), 503, true},
		{"refused by a limit of that audience", newLimiter, limit("outgoing", 0), 503, true},
		{"not decided", broken, limit("x", 9, closed), 503, false},
		{"passed by failure", broken, limit("x", 9), 500, false},
		{"admitted", newLimiter, limit("x", 9), 500, false},
		{"shadow", newLimiter, limit("x", 0, func(r *runtime.Rule) { r.Mode = runtime.ModeShadow }), 500, false},
		{"negative cost", newLimiter, limit("x", 9).WithCost(-1), 500, false},
	} {
		for mode, opts := range modes {
			found := 0
			limiter := c.limiter(runtime.WithObserver(&observe.Observer{Hidden: func(context.Context, observe.HiddenEvent) { found++ }}))
			opts = append(opts[:len(opts):len(opts)], ratehttp.WithPolicy("outgoing", ratefield.Policy{Audience: ratefield.Outgoing}))
			want := c.want
			if mode == "left" {
				want = 500
			}
			resp := answerOf(ratehttp.Middleware(opts...)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = limiter.Take(r.Context(), c.limit)
				http.Error(w, "internal error", 500)
			})))
			if resp.StatusCode != want || (found == 1) != (c.found && mode == "left") {
				t.Errorf("%s, %s: status %d, want %d, %d findings", c.name, mode, resp.StatusCode, want, found)
			}
		}
	}
}

// A refusal counts until its rule has admitted the same key in the request, or the time that its
// client would be told to wait is over.
func TestRefusalStands(t *testing.T) {
	rule := &runtime.Rule{Name: "r", Window: 1500 * time.Millisecond, Max: 1}
	other := &runtime.Rule{Name: "other", Window: time.Hour, Max: 9}
	full := func(name string) runtime.Limit { return rule.Limit(runtime.NewKey().AddString(name)) }
	var limiter *runtime.Limiter
	take := func(ctx context.Context, limits ...runtime.Limit) error {
		_, err := limiter.Take(ctx, limits...)
		return err
	}
	for name, c := range map[string]struct {
		do   func(ctx context.Context)
		want int
	}{
		"at once":                  {func(context.Context) {}, 429},
		"until a moment before it": {func(context.Context) { time.Sleep(2*time.Second - 1) }, 429},
		"no longer than it says":   {func(context.Context) { time.Sleep(2 * time.Second) }, 500},
		"not when retried":         {func(ctx context.Context) { time.Sleep(1500 * time.Millisecond); _ = take(ctx, full("a")) }, 500},
		"not when retried with others": {func(ctx context.Context) {
			time.Sleep(1500 * time.Millisecond)
			_ = take(ctx, other.Limit(nil), full("a"))
		}, 500},
		"when retried in vain": {func(ctx context.Context) { _ = take(ctx, full("a")) }, 429},
		"when retried in vain later": {func(ctx context.Context) {
			time.Sleep(1500 * time.Millisecond)
			_ = take(context.Background(), full("a"))
			_ = take(ctx, full("a"))
			time.Sleep(time.Second)
		}, 429},
		"when another key was admitted":       {func(ctx context.Context) { _ = take(ctx, full("b")) }, 429},
		"when another rule has admitted":      {func(ctx context.Context) { _ = take(ctx, other.Limit(runtime.NewKey().AddString("a"))) }, 429},
		"when another request was admitted":   {func(context.Context) { time.Sleep(1500 * time.Millisecond); _ = take(context.Background(), full("a")) }, 429},
		"what can never be admitted, forever": {func(ctx context.Context) { _ = take(ctx, full("c").WithCost(2)); time.Sleep(time.Hour) }, 429},
		"one of many": {func(ctx context.Context) {
			for i := range 20 {
				_ = take(context.Background(), full(fmt.Sprint(i)))
				_ = take(ctx, full(fmt.Sprint(i)))
			}
		}, 429},
	} {
		for _, inner := range []bool{false, true} { // the refusal was in a part of the request with a recorder of its own
			synctest.Test(t, func(t *testing.T) {
				limiter = newLimiter()
				defer limiter.Close()
				resp := answerOf(ratehttp.Middleware()(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					ctx := r.Context()
					if inner {
						ctx = observe.WithRefusalRecorder(ctx, func(observe.Refusal) {})
					}
					_ = take(context.Background(), full("a"))
					if take(ctx, full("a")) == nil {
						t.Error("admitted")
					}
					c.do(r.Context())
					w.WriteHeader(500)
				})))
				if resp.StatusCode != c.want {
					t.Errorf("%s, inner %t: %d", name, inner, resp.StatusCode)
				}
			})
		}
	}
	synctest.Test(t, func(t *testing.T) { // what nobody has decided says no time
		broken := runtime.New(failing(), runtime.WithLogger(silent), runtime.WithFailurePolicy(runtime.FailClosed))
		defer broken.Close()
		for wait, want := range map[time.Duration]int{0: 503, time.Minute - 1: 503, time.Minute: 500} {
			resp := answerOf(ratehttp.Middleware()(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = broken.Take(r.Context(), rule.Limit(nil))
				time.Sleep(wait)
				w.WriteHeader(500)
			})))
			if resp.StatusCode != want {
				t.Errorf("%v after no decision: %d, want %d", wait, resp.StatusCode, want)
			}
		}
	})
}

// Of a request that was refused and, by another limit, not decided, the client is told of
// the refusal, which says when to come back.
func TestRefusalBeforeOutage(t *testing.T) {
	full := (&runtime.Rule{Name: "full", Window: time.Hour, Max: 0}).Limit(nil)
	closed := (&runtime.Rule{Name: "closed", Window: time.Hour, Max: 9, Fail: runtime.FailClosed}).Limit(nil)
	refusing, broken := newLimiter(), runtime.New(failing(), runtime.WithLogger(silent))
	for _, first := range []bool{false, true} {
		resp := answerOf(ratehttp.Middleware()(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if first {
				_, _ = refusing.Take(r.Context(), full)
			}
			_, _ = broken.Take(r.Context(), closed)
			if !first {
				_, _ = refusing.Take(r.Context(), full)
			}
			http.Error(w, "internal error", 500)
		})))
		if resp.StatusCode != 429 {
			t.Errorf("refused first %t: status %d", first, resp.StatusCode)
		}
	}
}

// A limit on calls of the service's own is no client's fault, and nothing tells of it.
func TestAudience(t *testing.T) {
	rule := &runtime.Rule{Name: "peer.API", Window: time.Minute, Max: 1, Message: "internal peer is busy"}
	for audience, want := range map[ratefield.Audience]struct {
		status int
		told   bool
		detail string
	}{
		ratefield.Public:   {429, true, "internal peer is busy"},
		ratefield.Internal: {429, false, "internal peer is busy"},
		ratefield.Outgoing: {503, false, "The service has no capacity for the request now."},
	} {
		h := ratehttp.Middleware(ratehttp.WithLegacyFields(), ratehttp.WithPolicy("peer.*", ratefield.Policy{Audience: audience}))(
			taking(newLimiter(), rule.Limit(nil)))
		answerOf(h)
		resp := answerOf(h)
		doc := problemOf(t, resp)
		told := resp.Header.Get("RateLimit")+resp.Header.Get("RateLimit-Policy")+resp.Header.Get("X-RateLimit-Limit") != ""
		_, named := doc["violated-policies"]
		if resp.StatusCode != want.status || told != want.told || named != want.told || doc["detail"] != want.detail || resp.Header.Get("Retry-After") != "60" {
			t.Errorf("%v: %d %v %v", audience, resp.StatusCode, resp.Header, doc)
		}
	}
}

// The limits of a client that calls a peer are outgoing without a word, whatever holds for
// all other limits, and with the middleware or without; a policy for one's name counts.
func TestClientOfAPeer(t *testing.T) {
	for name, c := range map[string]struct {
		opts   []ratehttp.Option
		bare   bool
		want   int
		fields bool
	}{
		"middleware":        {want: 503},
		"no middleware":     {bare: true, want: 503},
		"all others hidden": {opts: []ratehttp.Option{ratehttp.WithPolicy("*", ratefield.Policy{Audience: ratefield.Internal})}, want: 503},
		"named":             {opts: []ratehttp.Option{ratehttp.WithPolicy("bank.api", ratefield.Policy{})}, want: 429, fields: true},
	} {
		transport, err := rateclient.New(newLimiter(), []rateclient.Peer{{Pattern: "/", Limits: []rateclient.PeerLimit{{Rule: runtime.Rule{Name: "bank.api", Window: time.Minute, Max: 1}}}}},
			rateclient.WithNext(peer(func(*http.Request) int { return 200 })))
		limittest.OK(t, err)
		var h http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			out, _ := http.NewRequestWithContext(r.Context(), "GET", "http://bank.example/", nil)
			if _, err := transport.RoundTrip(out); err != nil && !ratehttp.Error(w, r, err) {
				t.Error(err)
			}
		})
		if !c.bare {
			h = ratehttp.Middleware(c.opts...)(h)
		}
		for _, want := range []int{200, c.want} {
			resp := answerOf(h)
			text := fmt.Sprint(resp.Header, bodyOf(t, resp))
			if resp.StatusCode != want || strings.Contains(text, "bank") != c.fields || want != 200 && resp.Header.Get("Retry-After") == "" {
				t.Errorf("%s: %d %s", name, resp.StatusCode, text)
			}
		}
	}
}

// A rule of the server and one of a client may have one name, in one program and in one
// request: each is told as it is, with the middleware or without.
func TestClientHasTheNameOfARule(t *testing.T) {
	for _, bare := range []bool{false, true} {
		transport, err := rateclient.New(newLimiter(), []rateclient.Peer{{Pattern: "/", Limits: []rateclient.PeerLimit{{Rule: runtime.Rule{Name: "search", Window: time.Hour, Max: 1}}}}},
			rateclient.WithNext(peer(func(*http.Request) int { return 200 })))
		limittest.OK(t, err)
		limiter, own := newLimiter(), &runtime.Rule{Name: "search", Window: time.Hour, Max: 2}
		var h http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := limiter.Take(r.Context(), own.Limit(nil)); err != nil {
				ratehttp.Deny(w, r, err)
				return
			}
			out, _ := http.NewRequestWithContext(r.Context(), "GET", "http://peer.example/", nil)
			if _, err := transport.RoundTrip(out); err != nil {
				ratehttp.Deny(w, r, err)
			}
		})
		if !bare {
			h = ratehttp.Middleware()(h)
		}
		for i, want := range []struct {
			status int
			fields string
			named  bool
		}{
			{200, `"search";r=1;t=1800 "search";q=2;w=3600`, false},
			{503, `"search";r=0;t=3600 "search";q=2;w=3600`, false}, // by the peer's limit
			{429, `"search";r=0;t=3600 "search";q=2;w=3600`, true},
		} {
			resp := answerOf(h)
			fields, body := resp.Header.Get("RateLimit")+" "+resp.Header.Get("RateLimit-Policy"), bodyOf(t, resp)
			if bare && want.status != 429 {
				want.fields = " "
			} else if bare {
				want.fields = `"search";r=0;t=3600 `
			}
			if resp.StatusCode != want.status || fields != want.fields || !bare && strings.Contains(body, "search") != want.named {
				t.Errorf("bare %t, request %d: %d %s %s, want %+v", bare, i, resp.StatusCode, fields, body, want)
			}
		}
	}
}

// A peer answers with a status.
type peer func(*http.Request) int

func (p peer) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: p(r), Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

// The cap of the process is nobody's quota, with the middleware and without.
func TestProcessCapIsHidden(t *testing.T) {
	limiter := newLimiter(runtime.WithProcessCap(&runtime.Rule{Name: "secretCap", Window: time.Hour, Max: 1}))
	own := &runtime.Rule{Name: "own", Window: time.Hour, Max: 10}
	plain := taking(limiter, own.Limit(nil))
	answerOf(plain)
	for _, h := range []http.Handler{plain, ratehttp.Middleware()(plain)} {
		resp := answerOf(h)
		body := bodyOf(t, resp)
		if resp.StatusCode != 429 || strings.Contains(fmt.Sprint(resp.Header, body), "secretCap") || resp.Header.Get("Retry-After") == "" {
			t.Errorf("%d %v %s", resp.StatusCode, resp.Header, body)
		}
	}
}

// A permit comes back when its call ends, so the time to wait is for how long calls have
// lately held one, and not the time after which the permits of a dead process lapse.
func TestRetryAfterInFlight(t *testing.T) {
	rule := &runtime.Rule{Name: "flight", Window: 30 * time.Second, Max: 1, Algorithm: runtime.Concurrency}
	for _, c := range []struct {
		held time.Duration // by calls before; 0: there were none
		want string
	}{{0, "1"}, {time.Millisecond, "1"}, {2500 * time.Millisecond, "3"}, {time.Hour, "30"}} {
		t.Run(c.held.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limiter := newLimiter()
				defer limiter.Close()
				busy := func(d time.Duration) http.Handler {
					return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(d) })
				}
				m := ratehttp.Middleware()
				limit := ratehttp.RequestLimit{Limiter: limiter, Rule: rule, Key: func(*http.Request) string { return "all" }}
				wrap := func(h http.Handler) http.Handler { return m(limit.Wrap(h)) }
				if c.held > 0 {
					answerOf(wrap(busy(c.held)))
				}
				free := make(chan struct{})
				done := make(chan struct{})
				go func() {
					defer close(done)
					answerOf(wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-free })))
				}()
				synctest.Wait()
				resp := answerOf(wrap(busy(0)))
				close(free)
				<-done
				if got := resp.Header.Get("Retry-After"); resp.StatusCode != 429 || got != c.want {
					t.Errorf("status %d, Retry-After %q, want %s", resp.StatusCode, got, c.want)
				}
				if got := fmt.Sprint(parse(t, resp.Header, "RateLimit-Policy"), parse(t, resp.Header, "RateLimit")); got != fmt.Sprintf("[{flight map[q:1 qu:concurrent-requests]}] [{flight map[r:0 t:%s]}]", c.want) {
					t.Error(got)
				}
				if got := fmt.Sprint(parse(t, answerOf(wrap(busy(0))).Header, "RateLimit")); got != "[{flight map[r:0]}]" {
					t.Errorf("admitted: %s", got)
				}
			})
		})
	}
}

// A client reads when to come back in the text, in its language.
func TestMessages(t *testing.T) {
	rule := &runtime.Rule{Name: "shop.Orders", Window: 90 * time.Second, Max: 1, Message: "too many, come back in {retry_after}"}
	texts := map[string]string{"zh shop.Orders": "请 {retry_after} 后再来", "de ": "gerade nicht", "de shop.Orders": "in {retry_after} wieder"}
	m := ratehttp.Middleware(ratehttp.WithMessages(func(language, rule string) string {
		if language == "xx" {
			panic("no")
		}
		return texts[language+" "+rule]
	}))
	for accept, want := range map[string][2]string{
		"":                                {"too many, come back in 1m30s", ""},
		"fr, *;q=0.5":                     {"too many, come back in 1m30s", ""},
		"xx, de;q=0.5":                    {"too many, come back in 1m30s", ""},
		"zh-Hant-TW":                      {"请 1m30s 后再来", "zh"},
		"fr;q=0.9, ZH-cn;q=0.8, de;q=.7":  {"请 1m30s 后再来", "zh"},
		"zh;q=0, de;q=0.1":                {"in 1m30s wieder", "de"},
		"zh;q=x, de;q=0.1":                {"in 1m30s wieder", "de"},
		"zh\x00, -zh, zh--, de":           {"in 1m30s wieder", "de"},
		strings.Repeat("fr,", 500) + "de": {"too many, come back in 1m30s", ""},
	} {
		t.Run(accept, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := m(taking(newLimiter(), rule.Limit(nil)))
				answerOf(h)
				resp := answerOf(h, func(r *http.Request) { r.Header.Set("Accept-Language", accept) })
				if doc := problemOf(t, resp); doc["detail"] != want[0] || resp.Header.Get("Content-Language") != want[1] {
					t.Errorf("%q: %v, %q", accept, doc["detail"], resp.Header.Get("Content-Language"))
				}
			})
		})
	}
	never := m(taking(newLimiter(), (&runtime.Rule{Name: "shop.Orders", Window: time.Hour, Message: "in {retry_after}"}).Limit(nil)))
	for accept, want := range map[string]string{"": runtime.ErrCostExceedsLimit.Error(), "zh": runtime.ErrCostExceedsLimit.Error()} {
		if doc := problemOf(t, answerOf(never, func(r *http.Request) { r.Header.Set("Accept-Language", accept) })); doc["detail"] != want {
			t.Errorf("never: %v", doc["detail"])
		}
	}
	down := m(taking(runtime.New(failing(), runtime.WithLogger(silent)), (&runtime.Rule{Name: "x", Window: time.Hour, Max: 1, Fail: runtime.FailClosed}).Limit(nil)))
	if doc := problemOf(t, answerOf(down, func(r *http.Request) { r.Header.Set("Accept-Language", "de") })); doc["detail"] != "gerade nicht" {
		t.Errorf("unavailable: %v", doc["detail"])
	}
}

// Scripts of other origins can read what they are told, preflights are not charged, and
// a refusal that a script cannot read is reported.
func TestCORS(t *testing.T) {
	rule := &runtime.Rule{Name: "x", Window: time.Hour, Max: 1}
	cors := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Access-Control-Allow-Origin", "*")
			w.Header().Set("Access-Control-Expose-Headers", "X-Own")
			if r.Method == http.MethodOptions {
				w.WriteHeader(http.StatusNoContent)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
	script := func(r *http.Request) { r.Header.Set("Origin", "https://page.example") }
	preflight := func(r *http.Request) {
		script(r)
		r.Method = http.MethodOptions
		r.Header.Set("Access-Control-Request-Method", "POST")
	}
	for _, place := range []string{"outside", "between", "inside", "none"} {
		var log bytes.Buffer
		m := ratehttp.Middleware(ratehttp.WithCORS(), ratehttp.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		limit := ratehttp.RequestLimit{Limiter: newLimiter(), Rule: rule, Key: func(*http.Request) string { return "all" }}.Wrap
		ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
		h := map[string]http.Handler{
			"outside": cors(m(limit(ok))), "between": m(cors(limit(ok))), "inside": m(limit(cors(ok))), "none": m(limit(ok)),
		}[place]
		for range 3 {
			if resp := answerOf(h, preflight); resp.StatusCode > 299 || place != "none" && resp.Header.Get("Access-Control-Allow-Origin") == "" {
				t.Errorf("%s: a preflight got %d %v", place, resp.StatusCode, resp.Header)
			}
		}
		if resp := answerOf(h, script); resp.StatusCode != 200 || !strings.Contains(strings.Join(resp.Header.Values("Access-Control-Expose-Headers"), ","), "RateLimit-Policy, Retry-After") {
			t.Errorf("%s: %d %v", place, resp.StatusCode, resp.Header)
		}
		refused := answerOf(h, script)
		exposed := strings.Join(refused.Header.Values("Access-Control-Expose-Headers"), ",")
		if refused.StatusCode != 429 || !strings.Contains(exposed, "Retry-After") || (place == "outside" || place == "between") != strings.Contains(exposed, "X-Own") {
			t.Errorf("%s: refused %d %v", place, refused.StatusCode, refused.Header)
		}
		if warned := strings.Contains(log.String(), "cors_inside"); warned != (place == "inside" || place == "none") {
			t.Errorf("%s: log %q", place, log.String())
		}
		if resp := answerOf(h); resp.Header.Get("Access-Control-Expose-Headers") != "" && place != "outside" && place != "between" {
			t.Errorf("%s: exposed to no script: %v", place, resp.Header)
		}
		// A page of the server itself sends its origin too.
		log.Reset()
		same := ratehttp.Middleware(ratehttp.WithCORS(), ratehttp.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))(limit(ok))
		answerOf(same, func(r *http.Request) { r.Header.Set("Origin", "http://"+r.Host) })
		if log.Len() > 0 {
			t.Errorf("the same origin: %s", log.String())
		}
		// OPTIONS that is no preflight is charged, and without the option all is.
		if resp := answerOf(h, func(r *http.Request) { r.Method = http.MethodOptions }); place == "none" && resp.StatusCode != 429 {
			t.Errorf("OPTIONS: %d", resp.StatusCode)
		}
		if resp := answerOf(ratehttp.Middleware()(limit(ok)), preflight); resp.StatusCode != 429 {
			t.Errorf("a preflight without the option: %d", resp.StatusCode)
		}
	}
}
