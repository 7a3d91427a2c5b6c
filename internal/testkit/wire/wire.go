// Package wire asks a server of a framework, over a socket, for what limits admit and
// refuse. The modules of adapters share it.
package wire

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// A Service has limits inside of it. A server offers it as [Check] says.
type Service struct {
	counted, down *runtime.Limiter
	log           strings.Builder // of counted
}

// The limits of a Service.
var (
	show = &runtime.Rule{Name: "wire.Orders.Show", Window: time.Hour, Max: 1, Message: "one look an hour"}
	down = &runtime.Rule{Name: "wire.Orders.Down", Window: time.Hour, Max: 1, Fail: runtime.FailClosed}
	try  = &runtime.Rule{Name: "wire.login", Window: time.Hour, Max: 1}
)

// NewService returns a service that counts in memory, and that has no Redis where it
// needs one.
func NewService(t *testing.T) *Service {
	client := redis.NewClient(runtime.TuneRedis(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1}))
	quiet := runtime.WithLogger(slog.New(slog.DiscardHandler))
	s := &Service{down: runtime.New(runtime.NewRedisStore(client), quiet)}
	s.counted = runtime.New(runtime.NewMemoryStore(), runtime.WithLogger(slog.New(slog.NewTextHandler(&s.log, nil))))
	t.Cleanup(func() {
		_, _, _ = s.counted.Close(), s.down.Close(), client.Close()
	})
	return s
}

// Show admits one call an hour for each id, and for the id "down" what Down does.
func (s *Service) Show(ctx context.Context, id string) (string, error) {
	if id == "down" {
		return "", fmt.Errorf("orders: %w", s.Down(ctx))
	}
	if _, err := s.counted.Take(ctx, show.Limit(runtime.NewKey().AddString(id))); err != nil {
		return "", fmt.Errorf("orders: %w", err)
	}
	return "order " + id, nil
}

// Down admits nobody, because Redis is gone.
func (s *Service) Down(ctx context.Context) error {
	_, err := s.down.Take(ctx, down.Limit(runtime.NewKey()))
	return err
}

// Login returns a limit of one failed log-in an hour.
func (s *Service) Login() ratehttp.RequestLimit {
	return ratehttp.RequestLimit{
		Limiter: s.counted,
		Rule:    try,
		Key:     func(r *http.Request) string { return r.URL.Path },
		Refund:  func(status int) bool { return status != http.StatusUnauthorized },
	}
}

// Origin is that of a page in a browser, which the server allows.
const Origin = "https://shop.example"

// Check wants a server at a URL to answer
//
//   - GET /orders/{id} with what Show returns, and an error in the way of its framework, after
//     it has set the field X-Accel-Redirect,
//   - GET /hidden/{id} as well, but with the status 500 for whatever error,
//   - GET /lost/{id} as well, but with an error in the way of its framework that has the text of Show's alone,
//   - GET /meant/{id} as well, but with its framework's error for the status 404 for whatever error,
//   - GET /down with the error of Down,
//   - GET /client with the client's address,
//   - GET /missing with its framework's error for the status 404,
//   - POST /login behind the limit Login, with the status 200 for ?password=right, and
//     otherwise with an error of the framework for 401,
//
// and all of it behind its adapter and CORS for Origin.
func Check(t *testing.T, url string) {
	t.Run("refused", func(t *testing.T) {
		if a := wantStatus(t, 200, ask(t, "GET", url+"/orders/1")).wants("order 1").hasField(true); a.header.Get("X-Accel-Redirect") == "" {
			t.Errorf("an admitted answer lacks a field of its own: %v", a.header)
		}
		for _, path := range []string{"/orders/1", "/orders/1?again"} {
			a := wantStatus(t, 429, ask(t, "GET", url+path)).hasField(true)
			if s, err := strconv.Atoi(a.header.Get("Retry-After")); err != nil || s < 1 || s > 3600 {
				t.Errorf("Retry-After %q, want 1 to 3600", a.header.Get("Retry-After"))
			}
			if got := a.header.Get("X-Accel-Redirect"); got != "" {
				t.Errorf("a proxy is to serve %q in place of the refusal", got)
			}
			if mediaType := a.header.Get("Content-Type"); mediaType == "application/problem+json" {
				a.wants("one look an hour").wants("#quota-exceeded")
			} else {
				a.wants("one look an hour").wants("RATE_LIMIT_EXCEEDED")
			}
		}
		wantStatus(t, 200, ask(t, "GET", url+"/orders/2")).wants("order 2")
	})
	t.Run("unavailable", func(t *testing.T) {
		a := wantStatus(t, 503, ask(t, "GET", url+"/down"))
		for _, secret := range []string{"127.0.0.1", "dial", "refused"} {
			if strings.Contains(a.body, secret) {
				t.Errorf("a client is told of %q: %s", secret, a.body)
			}
		}
	})
	t.Run("another error", func(t *testing.T) { wantStatus(t, 404, ask(t, "GET", url+"/missing")) })
	t.Run("client", func(t *testing.T) { wantStatus(t, 200, ask(t, "GET", url+"/client")).wants("127.0.0.1") })
	t.Run("limit with refund", func(t *testing.T) {
		for range 3 {
			wantStatus(t, 200, ask(t, "POST", url+"/login?password=right"))
		}
		wantStatus(t, 401, ask(t, "POST", url+"/login?password=wrong")).hasField(true)
		wantStatus(t, 429, ask(t, "POST", url+"/login?password=right"))
	})
	t.Run("CORS", func(t *testing.T) {
		for range 2 { // a preflight is not charged
			a := ask(t, "OPTIONS", url+"/orders/4", "Origin", Origin, "Access-Control-Request-Method", "GET")
			if a.status > 204 || a.header.Get("Access-Control-Allow-Origin") == "" {
				t.Errorf("preflight: %+v", a)
			}
		}
		for _, status := range []int{200, 429} {
			a := wantStatus(t, status, ask(t, "GET", url+"/orders/4", "Origin", Origin))
			if got := a.header.Get("Access-Control-Allow-Origin"); got != Origin && got != "*" {
				t.Errorf("status %d allows the origin %q", status, got)
			}
			if got := a.header.Get("Access-Control-Expose-Headers"); !strings.Contains(got, "Retry-After") {
				t.Errorf("status %d exposes %q", status, got)
			}
		}
	})
}

// CheckHidden wants a server, which is as [Check] wants it but for its options, to answer what hides a
// refusal, and the log to have the route of GET /hidden/{id}.
func (s *Service) CheckHidden(t *testing.T, serve func(...ratehttp.Option) (url string), route string) {
	for mode, c := range map[string]struct {
		opts []ratehttp.Option
		want map[string]int
	}{
		"left":    {[]ratehttp.Option{ratehttp.WithHiddenRefusals()}, map[string]int{"/hidden/": 500, "/lost/": 500, "/meant/": 404, "/hidden/down": 500}},
		"default": {nil, map[string]int{"/hidden/": 429, "/lost/": 429, "/meant/": 404, "/hidden/down": 503, "/lost/down": 503}},
		"forced": {
			[]ratehttp.Option{ratehttp.WithForcedRefusals()},
			map[string]int{"/hidden/": 429, "/lost/": 429, "/meant/": 429, "/hidden/down": 503, "/lost/down": 503, "/meant/down": 503},
		},
	} {
		t.Run(mode, func(t *testing.T) {
			url := serve(c.opts...)
			for path, want := range c.want {
				if !strings.HasSuffix(path, "/down") {
					path += strings.ReplaceAll(path, "/", "-") + mode
					wantStatus(t, 200, ask(t, "GET", url+path))
				}
				wantStatus(t, want, ask(t, "GET", url+path)).told(want == 429 || want == 503)
			}
		})
	}
	for _, line := range []string{"code=hidden_refusal", "in its place"} {
		if !s.logged(line, route) {
			t.Errorf("no line has %q and the route %q:\n%s", line, route, s.log.String())
		}
	}
	if strings.Contains(s.log.String(), "-hidden-") {
		t.Errorf("the log has what the client has sent:\n%s", s.log.String())
	}
}

// told wants the answer to be a refusal, or not to be one.
func (a *answer) told(refused bool) {
	a.t.Helper()
	if a.status == 429 {
		a.hasField(true).wants("one look an hour")
	}
	if got := a.header.Get("Retry-After") != ""; got != (a.status == 429) {
		a.t.Errorf("status %d has Retry-After %q", a.status, a.header.Get("Retry-After"))
	}
	if refused && (strings.Contains(a.body, "127.0.0.1") || strings.Contains(a.body, "internal") || a.header.Get("Content-Encoding") != "") {
		a.t.Errorf("status %d: the client is told %v %s", a.status, a.header, a.body)
	}
}

// CheckLogged wants the log to have a route.
func (s *Service) CheckLogged(t *testing.T, route string) {
	if !s.logged("", route) {
		t.Errorf("the log has no route %q:\n%s", route, s.log.String())
	}
}

// logged reports whether a line of the log has a text and a route.
func (s *Service) logged(text, route string) bool {
	for line := range strings.Lines(s.log.String()) {
		line = strings.TrimSuffix(line, "\n") + " "
		if strings.Contains(line, text) && (strings.Contains(line, fmt.Sprintf("route=%q ", route)) || strings.Contains(line, "route="+route+" ")) {
			return true
		}
	}
	return false
}

// CheckUnfit wants a limit that cannot work to panic when the server is built.
func CheckUnfit(t *testing.T, build func(ratehttp.RequestLimit)) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	build(ratehttp.RequestLimit{Rule: &runtime.Rule{Name: "x"}})
}

// An answer is what a client has got.
type answer struct {
	t      *testing.T
	status int
	header http.Header
	body   string
}

func ask(t *testing.T, method, url string, header ...string) *answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	return &answer{t, got.StatusCode, got.Header, string(body)}
}

func wantStatus(t *testing.T, status int, a *answer) *answer {
	t.Helper()
	if a.status != status {
		t.Fatalf("status %d, want %d: %v %s", a.status, status, a.header, a.body)
	}
	return a
}

func (a *answer) wants(text string) *answer {
	a.t.Helper()
	if !strings.Contains(a.body, text) {
		a.t.Errorf("the body %q has no %q", a.body, text)
	}
	return a
}

func (a *answer) hasField(want bool) *answer {
	a.t.Helper()
	if got := a.header.Get("RateLimit") != ""; got != want {
		a.t.Errorf("the answer has a field RateLimit: %t, want %t", got, want)
	}
	if n := len(a.header.Values("RateLimit-Policy")); n > 1 {
		a.t.Errorf("the answer has %d fields RateLimit-Policy", n)
	}
	return a
}
