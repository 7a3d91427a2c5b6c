// Package wire asks a server of a framework, over a socket, for what limits admit and
// refuse. The modules of adapters share it.
package wire

import (
	"context"
	_ "embed"
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

// CheckAdapter has servers of a framework checked, whose own middleware stands inside of the adapter, or outside. The log is
// to have the route of GET /hidden/:id.
func CheckAdapter(t *testing.T, route string, serve func(t *testing.T, s *Service, outside bool, opts ...ratehttp.Option) (url string)) {
	for _, outside := range []bool{false, true} {
		Check(t, serve(t, NewService(t), outside))
		s := NewService(t)
		s.CheckHidden(t, func(opts ...ratehttp.Option) string { return serve(t, s, outside, opts...) }, route)
	}
}

// Check wants a server at a URL to answer as the [Service.Routes] say, all of it behind its adapter and CORS for Origin.
func Check(t *testing.T, url string) { play(t, url, steps) }

//go:embed service.txt
var steps string

// play asks a server for what stands before each arrow, with fields, and wants the answer to have what stands behind it.
func play(t *testing.T, url, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		step, want, is := strings.Cut(strings.TrimSpace(line), " -> ")
		if !is {
			continue
		}
		words := strings.Fields(step)
		a := ask(t, words[0], url+words[1], words[2:]...)
		for part := range strings.SplitSeq(want, " | ") {
			if !a.has(part) {
				t.Errorf("%s: want %s: %d %v %s", step, part, a.status, a.header, a.body)
			}
		}
	}
}

// has reports whether an answer has a status, a field whose name ends with a colon and what it is to hold, or a text.
func (a *answer) has(want string) bool {
	if first, second, either := strings.Cut(want, " or "); either {
		return a.has(first) || a.has(second)
	}
	if what, not := strings.CutPrefix(want, "no "); not {
		return !a.has(what)
	}
	if status, err := strconv.Atoi(want); err == nil {
		return a.status == status
	}
	if name, value, field := strings.Cut(want, ":"); field {
		held := a.header.Get(name)
		return held != "" && strings.Contains(held, strings.TrimSpace(value))
	}
	return strings.Contains(a.body, want)
}

// CheckHidden wants a server, which is as [Check] wants it but for its options, to answer what hides a
// refusal, and the log to have the route of GET /hidden/{id}.
func (s *Service) CheckHidden(t *testing.T, serve func(...ratehttp.Option) (url string), route string) {
	const private = " | no 127.0.0.1 | no internal | no Content-Encoding:"
	answers := map[int]string{404: "404", 429: "429 | RateLimit: | one look an hour" + private, 500: "500", 503: "503" + private}
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
					play(t, url, "GET "+path+" -> 200")
				}
				play(t, url, "GET "+path+" -> "+answers[want])
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
	status int
	header http.Header
	body   string
}

// ask asks for something, and wants only a refusal to say for how long.
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
	told := got.Header.Get("Retry-After")
	if s, err := strconv.Atoi(told); (told != "") != (got.StatusCode == 429) || told != "" && (err != nil || s < 1 || s > 3600) {
		t.Errorf("status %d has Retry-After %q, want 1 to 3600 in a refusal", got.StatusCode, told)
	}
	if n := len(got.Header.Values("RateLimit-Policy")); n > 1 {
		t.Errorf("the answer has %d fields RateLimit-Policy", n)
	}
	return &answer{got.StatusCode, got.Header, string(body)}
}
