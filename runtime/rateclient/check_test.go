package rateclient_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rateclient"
	"github.com/rategen/rategen/runtime/rule"
)

// TestDeadPatterns wants a pattern that no request can fit to be an error that says what to
// write, and others not to be.
func TestDeadPatterns(t *testing.T) {
	t.Parallel()
	limits := []rateclient.PeerLimit{{Rule: runtime.Rule{Name: "a", Window: time.Second, Max: 1}}}
	for pattern, remedy := range map[string]string{
		"localhost:80/":                `"localhost/"`,
		"POST localhost:8080/v1/":      `"localhost/v1/"`,
		"API.example.com/":             `"api.example.com/"`,
		"https://api.example.com/":     `"api.example.com/"`,
		"GET http://localhost:80/x":    `"localhost:80/x"`,
		"*.host/":                      "for each host",
		"get host/":                    `"GET host/"`,
		"host./":                       `"host/"`,
		"[::1]/":                       `"::1/"`,
		"[::1]:80/":                    `"::1`,
		"host/x?y=1":                   "without a query",
		"/shop.v1.Orders":              `"/shop.v1.Orders/"`,
		"api.test/shop.Orders":         `"api.test/shop.Orders/"`,
		"POST api.test/shop.v1.Orders": `"POST api.test/shop.v1.Orders/"`,
		"host/a/../b":                  "and dots",
	} {
		_, err := rateclient.New(runtime.New(runtime.NewMemoryStore()), []rateclient.Peer{{Pattern: pattern, Limits: limits}})
		if err == nil || !strings.Contains(err.Error(), remedy) {
			t.Errorf("%q: %v, want %s", pattern, err, remedy)
		}
	}
	for pattern, url := range map[string]string{
		"/":                           "http://a.test/x",
		"a.test/":                     "https://A.Test.:8443/x",
		"::1/":                        "http://[::1]:80/x",
		"a.test/robots.txt":           "http://a.test/robots.txt",
		"a.test/api/chat.postMessage": "http://a.test/api/chat.postMessage",
		"a.test/v1.2":                 "http://a.test/v1.2",
		"/shop.v1.Orders/":            "http://a.test/shop.v1.Orders/Get",
		"PROPFIND a.test/{x...}":      "http://a.test/",
	} {
		transport, err := rateclient.New(runtime.New(runtime.NewMemoryStore()), []rateclient.Peer{{Pattern: pattern, Limits: limits}},
			rateclient.WithNext(new(service)), rateclient.WithOthers(false))
		if err != nil {
			t.Errorf("%q: %v", pattern, err)
			continue
		}
		method, _, _ := strings.Cut(pattern, " ")
		if method == pattern {
			method = "POST"
		}
		r, _ := http.NewRequest(method, url, nil)
		if call, err := transport.Admit(r); call == nil || err != nil {
			t.Errorf("%q does not fit %q: %v", pattern, url, err)
		}
	}
	if _, err := rateclient.New(runtime.New(runtime.NewMemoryStore()), nil); err == nil || !strings.Contains(err.Error(), "no peers") {
		t.Errorf("without peers: %v", err)
	}
}

// TestDeadRules wants a rule by which no request could be counted, or held back, to be an
// error of New.
func TestDeadRules(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*rateclient.PeerLimit){
		"a Period":           func(l *rateclient.PeerLimit) { l.Rule.Period = rule.Month },
		"a Headroom":         func(l *rateclient.PeerLimit) { l.Rule.Algorithm, l.Rule.Headroom = runtime.TokenBucket, -1 },
		"a Tenant":           func(l *rateclient.PeerLimit) { l.Tenant = func(*http.Request, *runtime.Key) int64 { return 1 } },
		"Keep":               func(l *rateclient.PeerLimit) { l.Rule.Keep = 2 },
		"carries":            func(l *rateclient.PeerLimit) { l.Rule.Algorithm, l.Rule.Debt = runtime.FixedWindow, rule.DebtCarry },
		"max 2000000":        func(l *rateclient.PeerLimit) { l.Rule.Max = 2_000_000 },
		"max 3000000":        func(l *rateclient.PeerLimit) { l.Least, l.Most = 1, 3_000_000 },
		"max 90071992547409": func(l *rateclient.PeerLimit) { l.Rule.Algorithm, l.Rule.Max = runtime.FixedWindow, rule.MaxAmount },
		"burst -1":           func(l *rateclient.PeerLimit) { l.Rule.Algorithm, l.Rule.Burst = runtime.TokenBucket, -1 },
		"burst:":             func(l *rateclient.PeerLimit) { l.Rule.Burst = 3 },
		"unknown algorithm":  func(l *rateclient.PeerLimit) { l.Rule.Algorithm = 99 },
		"shadow mode":        func(l *rateclient.PeerLimit) { l.Rule.Mode = runtime.ModeShadow },
		"soft mode":          func(l *rateclient.PeerLimit) { l.Rule.Mode = runtime.ModeSoft },
		"resolution": func(l *rateclient.PeerLimit) {
			l.Rule.Algorithm, l.Rule.Resolution = runtime.FixedWindow, time.Millisecond
		},
	} {
		l := rateclient.PeerLimit{Rule: runtime.Rule{Name: "a", Window: time.Second, Max: 1}}
		change(&l)
		_, err := rateclient.New(runtime.New(runtime.NewMemoryStore()), []rateclient.Peer{{Pattern: "a.test/", Limits: []rateclient.PeerLimit{l}}})
		if err == nil || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestOthers wants a request that meets no peer to be told of once, or refused, or neither, as
// the program says.
func TestOthers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		opts  []rateclient.Option
		told  int
		err   error
		which string
	}{
		{nil, 1, nil, "told"},
		{[]rateclient.Option{rateclient.WithOthers(true)}, 0, nil, "sent"},
		{[]rateclient.Option{rateclient.WithOthers(false)}, 0, rateclient.ErrNoPeer, "refused"},
	} {
		var log bytes.Buffer
		s, limiter := new(service), runtime.New(runtime.NewMemoryStore())
		transport, err := rateclient.New(limiter, []rateclient.Peer{{Pattern: "a.test/", Limits: perSecond(10)}},
			append(c.opts, rateclient.WithNext(s), rateclient.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))...)
		limittest.OK(t, err)
		for range 3 {
			r, _ := http.NewRequest(http.MethodPost, "http://b.test/private?secret=1", s.body("x"))
			response, err := transport.RoundTrip(r)
			if !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
				t.Errorf("%s: %v", c.which, err)
			}
			if err == nil {
				_ = response.Body.Close()
			} else if text := err.Error(); !strings.Contains(text, "POST b.test") || strings.Contains(text, "secret") {
				t.Errorf("%s: %v", c.which, err)
			}
			if _, err := transport.Admit(r); !errors.Is(err, c.err) {
				t.Errorf("%s: Admit: %v", c.which, err)
			}
		}
		if n := strings.Count(log.String(), "code=no_peer"); n != c.told || strings.Contains(log.String(), "secret") {
			t.Errorf("%s: the log has %d lines of it: %s", c.which, n, &log)
		}
		if s.unclosed.Load() != 0 || (s.seen() == 0) != (c.err != nil) {
			t.Errorf("%s: %d were sent, %d bodies are open", c.which, s.seen(), s.unclosed.Load())
		}
		if c.told > 0 && !strings.Contains(limiterFindings(limiter), "no_peer") {
			t.Errorf("%s: %s", c.which, limiterFindings(limiter))
		}
		_ = limiter.Close()
	}
}

func limiterFindings(l *runtime.Limiter) (text string) {
	for _, f := range l.Findings() {
		text += f.String() + "\n"
	}
	return text
}

// TestContradictionTold wants a limit of 0 on an answer that was served to hold nobody back, and
// to be told of once.
func TestContradictionTold(t *testing.T) {
	t.Parallel()
	s := &service{answer: func(*http.Request) (int, map[string]string) {
		return 200, map[string]string{"X-RateLimit-Limit": "0", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "3600"}
	}}
	var log bytes.Buffer
	limiter := runtime.New(runtime.NewMemoryStore())
	defer limiter.Close()
	transport, err := rateclient.New(limiter, []rateclient.Peer{{Pattern: "a.test/", Limits: perSecond(10)}},
		rateclient.WithNext(s), rateclient.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	limittest.OK(t, err)
	for range 5 {
		if status, err := get(t.Context(), transport, "http://a.test/"); status != 200 || err != nil {
			t.Fatal(status, err)
		}
	}
	if strings.Count(log.String(), "code=contradiction") != 1 || strings.Count(log.String(), "\n") != 1 || !strings.Contains(limiterFindings(limiter), "contradiction (peer)") {
		t.Errorf("log %s\nfindings %s", &log, limiterFindings(limiter))
	}
}
