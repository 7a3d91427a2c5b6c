package ratehttp_test

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime/ratefield"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// clientOf returns the client of a request from a peer with lines of headers, each of
// the form "Name: value".
func clientOf(peer string, lines []string, opts ...ratehttp.Option) (client string) {
	h := ratehttp.Middleware(append(opts, ratehttp.WithLogger(silent))...)(http.HandlerFunc(
		func(_ http.ResponseWriter, r *http.Request) { client = ratehttp.ClientIP(r.Context()) }))
	answerOf(h, func(r *http.Request) {
		r.RemoteAddr = peer
		for _, line := range lines {
			name, value, _ := strings.Cut(line, ": ")
			r.Header.Add(name, value)
		}
	})
	return client
}

// proxies trusts a private network, an IPv6 one, and one that is written in IPv6.
func proxies(header string) ratehttp.Option {
	return ratehttp.WithTrustedProxies(header, netip.MustParsePrefix("10.0.0.0/8"),
		netip.MustParsePrefix("2001:db8:ffff::/48"), netip.MustParsePrefix("::ffff:192.168.0.0/112"))
}

const proxy = "10.0.0.1:4711"

// A program may find the client in a way of its own.
func TestWithClientIP(t *testing.T) {
	for addr, want := range map[string]string{
		"203.0.113.7": "203.0.113.7", "::ffff:203.0.113.7": "203.0.113.7", "2001:db8:1:2:3:4:5:6": "2001:db8:1::/56", "fe80::1%eth0": "fe80::1",
	} {
		limittest.Equal(t, addr, ratehttp.ClientIP(ratehttp.WithClientIP(t.Context(), netip.MustParseAddr(addr))), want)
	}
	if got := ratehttp.ClientIP(ratehttp.WithClientIP(t.Context(), netip.Addr{})); got != "unknown" {
		t.Error(got)
	}
	limittest.Equal(t, "a call without a client counts against", ratehttp.ClientIP(t.Context()), "unknown")
	h := ratehttp.Middleware(ratehttp.WithIPv6Prefix(64))(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		ctx, end := context.WithCancel(ratehttp.WithClientIP(r.Context(), netip.MustParseAddr("2001:db8:1:2:3:4:5:6")))
		defer end()
		limittest.Equal(t, "below a middleware", ratehttp.ClientIP(ctx), "2001:db8:1:2::/64")
	}))
	answerOf(h)
}

func TestBadOptionsPanic(t *testing.T) {
	for name, f := range map[string]func(){
		"another header":    func() { ratehttp.WithTrustedProxies("X-Real-IP", netip.MustParsePrefix("10.0.0.0/8")) },
		"every IPv4":        func() { ratehttp.WithTrustedProxies("Forwarded", netip.MustParsePrefix("0.0.0.0/0")) },
		"every IPv6":        func() { ratehttp.WithTrustedProxies("Forwarded", netip.MustParsePrefix("::/0")) },
		"every mapped IPv4": func() { ratehttp.WithTrustedProxies("Forwarded", netip.MustParsePrefix("::ffff:0.0.0.0/96")) },
		"all of NAT64":      func() { new(ratehttp.Networks).Exempt(netip.MustParsePrefix("64:ff9b::/96")) },
		"nobody of NAT64":   func() { new(ratehttp.Networks).Refuse(netip.MustParsePrefix("64:ff9b::/96")) },
		"around NAT64":      func() { new(ratehttp.Networks).Refuse(netip.MustParsePrefix("64:ff9b::/64")) },
		"far around NAT64":  func() { new(ratehttp.Networks).Exempt(netip.MustParsePrefix("64:ff9b::/32")) },
		"proxies of NAT64":  func() { ratehttp.WithTrustedProxies("Forwarded", netip.MustParsePrefix("64:ff9b::/95")) },
		"an invalid prefix": func() { ratehttp.WithTrustedProxies("Forwarded", netip.Prefix{}) },
		"no bits":           func() { ratehttp.WithIPv6Prefix(0) },
		"too many bits":     func() { ratehttp.WithIPv6Prefix(129) },
		"no secret":         func() { ratehttp.WithPartitionKey(nil, func(*http.Request, string) string { return "" }) },
		"no function":       func() { ratehttp.WithPartitionKey([]byte("s"), nil) },
		"a unit":            func() { ratehttp.WithPolicy("x", ratefield.Policy{Unit: "apples"}) },
		"a draft":           func() { ratehttp.WithDraft(99) },
		"a rate":            func() { ratehttp.WithMaxRate(0) },
		"no handler":        func() { ratehttp.Middleware()(nil) },
		"no limiter":        func() { ratehttp.RequestLimit{Rule: nobody}.Wrap(http.NotFoundHandler()) },
		"no rule":           func() { ratehttp.RequestLimit{Limiter: newLimiter()}.Wrap(http.NotFoundHandler()) },
		"no usage":          func() { ratehttp.Usage(nil) },
		"no history":        func() { ratehttp.History(nil) },
		"nothing to limit":  func() { ratehttp.RequestLimit{Limiter: newLimiter(), Rule: nobody}.Wrap(nil) },
	} {
		func() {
			defer func() {
				if text, ok := recover().(string); !ok || !strings.HasPrefix(text, "ratehttp: ") {
					t.Errorf("%s: %q", name, text)
				}
			}()
			f()
		}()
	}
}
