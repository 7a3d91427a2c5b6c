package ratehttp_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
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
