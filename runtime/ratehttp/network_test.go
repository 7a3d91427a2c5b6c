package ratehttp_test

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// Hops count from the peer. They stand beside the ranges of trusted proxies, and what is
// no address ends the search as ever.
func TestTrustedHops(t *testing.T) {
	hops := func(n int) ratehttp.Option { return ratehttp.WithTrustedHops(ratehttp.XForwardedFor, n) }
	ranges := proxies(ratehttp.XForwardedFor)
	for _, c := range []struct {
		peer, header string
		opts         []ratehttp.Option
		want         string
	}{
		{"198.51.100.1:1", "203.0.113.7", []ratehttp.Option{hops(1)}, "203.0.113.7"},
		{"198.51.100.1:1", "10.9.9.9, 203.0.113.7", []ratehttp.Option{hops(1)}, "203.0.113.7"}, // the client's own claim
		{"198.51.100.1:1", "10.9.9.9, 203.0.113.7, 198.51.100.2", []ratehttp.Option{hops(2)}, "203.0.113.7"},
		{"198.51.100.1:1", "203.0.113.7", []ratehttp.Option{hops(2)}, "203.0.113.7"}, // a shorter chain
		{"198.51.100.1:1", "", []ratehttp.Option{hops(3)}, "198.51.100.1"},
		{"198.51.100.1:1", "203.0.113.7, junk", []ratehttp.Option{hops(2)}, "198.51.100.1"},
		{"198.51.100.1:1", "203.0.113.7, 10.0.0.2", []ratehttp.Option{ranges, hops(1)}, "203.0.113.7"},
		{"198.51.100.1:1", "203.0.113.7, 10.0.0.2", []ratehttp.Option{hops(1), ranges}, "203.0.113.7"},
		{"198.51.100.1:1", "203.0.113.7, 10.0.0.2", []ratehttp.Option{ranges}, "198.51.100.1"},
		{"10.0.0.1:1", "203.0.113.7, 198.51.100.2", []ratehttp.Option{ranges, hops(2)}, "203.0.113.7"},
	} {
		var lines []string
		if c.header != "" {
			lines = []string{"X-Forwarded-For: " + c.header}
		}
		if got := clientOf(c.peer, lines, c.opts...); got != c.want {
			t.Errorf("%s by %s is %s, want %s", c.header, c.peer, got, c.want)
		}
	}
}

// A translator's IPv6 address is the IPv4 address in it: for keys, proxies and networks.
func TestNAT64(t *testing.T) {
	a, b := clientOf("[64:ff9b::203.0.113.7]:1", nil), clientOf("[64:ff9b::cb00:7108]:1", nil)
	if a != "203.0.113.7" || b != "203.0.113.8" {
		t.Errorf("clients behind a translator are %s and %s", a, b)
	}
	limittest.Equal(t, "behind a translated proxy", clientOf("[64:ff9b::10.0.0.1]:1", []string{"X-Forwarded-For: 64:ff9b::203.0.113.7"}, proxies(ratehttp.XForwardedFor)), "203.0.113.7")
	limittest.Equal(t, "another prefix", clientOf("[64:ff9b:1::203.0.113.7]:1", nil), "64:ff9b:1::/56")
}

// Networks are never limited or never served, from one request to the next.
func TestNetworks(t *testing.T) {
	var networks ratehttp.Networks
	limiter := newLimiter(runtime.WithProcessCap(&runtime.Rule{Name: "cap", Window: time.Hour, Max: 1000}))
	m := ratehttp.Middleware(proxies(ratehttp.XForwardedFor), ratehttp.WithNetworks(&networks))
	rule := &runtime.Rule{Name: "x", Window: time.Hour, Max: 1}
	served := 0
	h := m(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served++
		taking(limiter, rule.Limit(nil)).ServeHTTP(w, r)
	}))
	get := func(addr string) *http.Response {
		return answerOf(h, func(r *http.Request) {
			r.RemoteAddr = proxy
			r.Header.Set("X-Forwarded-For", addr)
		})
	}
	prefixes := func(all ...string) (p []netip.Prefix) {
		for _, s := range all {
			p = append(p, netip.MustParsePrefix(s))
		}
		return p
	}
	get("198.51.100.1") // the last that is admitted
	want := func(addr string, status int) {
		t.Helper()
		before := served
		resp := get(addr)
		if resp.StatusCode != status || (status == 403) != (served == before) {
			t.Errorf("%s got %d, want %d", addr, resp.StatusCode, status)
		}
		if status == 403 {
			if doc := problemOf(t, resp); doc["title"] != "Forbidden" || resp.Header.Get("Retry-After") != "" {
				t.Errorf("%v %v", resp.Header, doc)
			}
		}
	}
	want("203.0.113.7", 429)
	networks.Exempt(prefixes("203.0.113.0/24", "::ffff:192.0.2.0/120", "2001:db8:1::/48")...)
	networks.Refuse(prefixes("203.0.0.0/16", "203.0.113.66/32", "64:ff9b::c612:0/112", "2001:db8:1::/48")...)
	want("203.0.113.7", 200)
	want("64:ff9b::cb00:7107", 200)
	want("192.0.2.1", 200)
	want("203.0.113.66", 403)
	want("203.0.1.1", 403)
	want("198.18.3.4", 403)
	want("2001:db8:1::1", 403) // of two that are the same the refused one
	want("198.51.100.1", 429)
	networks.Exempt()
	networks.Refuse()
	want("203.0.113.7", 429)
	want("203.0.113.66", 429)
	grpc := answerOf(func() http.Handler { networks.Refuse(prefixes("0.0.0.0/0")...); return h }(), contentType("application/grpc"))
	if grpc.Header.Get("Grpc-Status") != "7" {
		t.Errorf("gRPC: %v", grpc.Header)
	}
}

// A peer of another transport.
type remote struct {
	addr  string
	lines map[string][]string
}

func (r remote) Addr() string                { return r.addr }
func (r remote) Header(name string) []string { return r.lines[strings.ToLower(name)] }

// Calls of another transport have clients as requests do.
func TestClients(t *testing.T) {
	var networks ratehttp.Networks
	networks.Refuse(netip.MustParsePrefix("203.0.113.66/32"))
	networks.Exempt(netip.MustParsePrefix("203.0.113.9/32"))
	clients := ratehttp.NewClients(proxies(ratehttp.XForwardedFor).(ratehttp.ClientOption), ratehttp.WithNetworks(&networks), ratehttp.WithLogger(silent))
	limiter := newLimiter()
	none := &runtime.Rule{Name: "x", Window: time.Hour}
	for _, c := range []struct {
		peer   remote
		want   string
		err    error
		exempt bool
	}{
		{remote{addr: "203.0.113.7:5"}, "203.0.113.7", nil, false},
		{remote{proxy, map[string][]string{"x-forwarded-for": {"203.0.113.7"}}}, "203.0.113.7", nil, false},
		{remote{"198.51.100.1:1", map[string][]string{"x-forwarded-for": {"203.0.113.7"}}}, "198.51.100.1", nil, false},
		{remote{addr: "bufconn"}, "unknown", nil, false},
		{remote{}, "unknown", nil, false},
		{remote{addr: "203.0.113.66:5"}, "", ratehttp.ErrNetworkRefused, false},
		{remote{addr: "203.0.113.9:5"}, "203.0.113.9", nil, true},
	} {
		ctx, err := clients.Begin(t.Context(), c.peer)
		if !errors.Is(err, c.err) {
			t.Errorf("%v: %v", c.peer, err)
		}
		if err != nil {
			continue
		}
		if got := ratehttp.ClientIP(ctx); got != c.want {
			t.Errorf("%v is %s, want %s", c.peer, got, c.want)
		}
		if _, err := limiter.Take(ctx, none.Limit(nil)); (err == nil) != c.exempt {
			t.Errorf("%v: %v", c.peer, err)
		}
		if out := limiter.TakeEach(ctx, none.Limit(nil)); out[0].Allowed != c.exempt {
			t.Errorf("%v: %v", c.peer, out)
		}
		limittest.Equal(t, "a client that is set", ratehttp.ClientIP(ratehttp.WithClientIP(ctx, netip.MustParseAddr("64:ff9b::1.2.3.4"))), "1.2.3.4")
	}
	answerOf(ratehttp.Middleware()(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		ctx, err := clients.Begin(r.Context(), remote{addr: "203.0.113.66:5"})
		if got := ratehttp.ClientIP(ctx); err != nil || got != "192.0.2.1" {
			t.Errorf("in a request: %s, %v", got, err)
		}
	})))
	if _, err := limiter.Take(context.Background(), none.Limit(nil)); err == nil {
		t.Error("other calls have no limits either")
	}
}
