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

func TestClientIP(t *testing.T) {
	long := strings.Repeat("x", 5000)
	trustedHops := strings.TrimSuffix(strings.Repeat("10.0.0.2, ", 63), ", ")
	for _, c := range []struct {
		lines string // of the header, separated by |
		want  string
	}{
		{"203.0.113.7", "203.0.113.7"},
		{"203.0.113.7:4711", "203.0.113.7"},
		{`"203.0.113.7:4711"`, "203.0.113.7"},
		{"[2001:db8:1::1]", "2001:db8:1::/56"},
		{"[2001:db8:1::1]:4711", "2001:db8:1::/56"},
		{"2001:db8:1::1", "2001:db8:1::/56"},
		{"[2001:db8:1::1%eth0]:_hidden", "2001:db8:1::/56"},
		{"[fe80::1%eth0]:4711", "fe80::1"},
		{"fd7a:115c:a1e0::7", "fd7a:115c:a1e0::7"},
		{"203.0.113.7, 10.0.0.2, 192.168.3.4 ,2001:db8:ffff::1", "203.0.113.7"},
		{"203.0.113.7|10.0.0.2|192.168.3.4", "203.0.113.7"},
		{"203.0.113.7, , 10.0.0.2,,|,|", "203.0.113.7"},
		{"10.0.0.3, 10.0.0.2", "10.0.0.3"}, // all trusted: the first
		{"", "10.0.0.1"},
		{" , ", "10.0.0.1"},
		// What is no address ends the walk at the proxy that has written it.
		{"203.0.113.7, garbage", "10.0.0.1"},
		// IPv6 with a port and no brackets, where it is not an address as it stands.
		{"2001:db8:1::1:50123", "2001:db8:1::/56"},
		{"2001:db8:1:2:3:4:5:6:443", "2001:db8:1::/56"},
		{"2001:db8:1:::443", "2001:db8:1::/56"},
		{"::ffff:203.0.113.7:443", "203.0.113.7"},
		{"203.0.113.7, 2001:db8:1::1:123456", "10.0.0.1"},
		{"203.0.113.7, [2001:db8:1::1:50123]", "10.0.0.1"},
		{"203.0.113.7, garbage, 10.0.0.2", "10.0.0.2"},
		{"203.0.113.7, 256.0.0.1", "10.0.0.1"},
		{"203.0.113.7, 1.2.3", "10.0.0.1"},
		{"203.0.113.7, 1.2.3.4:", "10.0.0.1"},
		{"203.0.113.7, 1.2.3.4:123456", "10.0.0.1"},
		{"203.0.113.7, 1.2.3.4:port", "10.0.0.1"},
		{"203.0.113.7, [1.2.3.4]", "10.0.0.1"},
		{"203.0.113.7, [::1", "10.0.0.1"},
		{"203.0.113.7, [::1]x", "10.0.0.1"},
		{"203.0.113.7, \"", "10.0.0.1"},
		{"203.0.113.7, \x00", "10.0.0.1"},
		// The walk is bounded.
		{"203.0.113.7, " + trustedHops, "203.0.113.7"},
		{"203.0.113.7, 10.0.0.2, " + trustedHops, "10.0.0.2"},
		{"203.0.113.7, 10.0.0.3, " + strings.Repeat("10.0.0.2, ", 10_000), "10.0.0.2"},
		{long + ", 203.0.113.7", "203.0.113.7"},
		{"203.0.113.7, " + long, "10.0.0.1"},
		{"203.0.113.7, " + long + ", 10.0.0.2", "10.0.0.2"},
		{strings.Repeat(",", 100_000), "10.0.0.1"},
		{strings.Repeat("|", 100_000), "10.0.0.1"},
	} {
		var xff, fwd []string
		for _, line := range strings.Split(c.lines, "|") {
			xff = append(xff, "X-Forwarded-For: "+line)
			var nodes []string
			for _, node := range strings.Split(line, ",") {
				if node = strings.Trim(node, " "); node != "" {
					node = "proto=https;FOR=" + node + ";by=10.0.0.9"
				}
				nodes = append(nodes, node)
			}
			fwd = append(fwd, "Forwarded: "+strings.Join(nodes, ", "))
		}
		if got := clientOf(proxy, xff, proxies(ratehttp.XForwardedFor)); got != c.want {
			t.Errorf("X-Forwarded-For %.80q: the client is %s, not %s", c.lines, got, c.want)
		}
		if len(c.lines) > 1000 && !strings.HasPrefix(c.lines, long) {
			continue // these are longer as Forwarded, and so end earlier
		}
		if got := clientOf(proxy, fwd, proxies(ratehttp.Forwarded)); got != c.want {
			t.Errorf("Forwarded %.80q: the client is %s, not %s", c.lines, got, c.want)
		}
	}
	for line, want := range map[string]string{
		"for=203.0.113.7;for=198.51.100.1": "10.0.0.1",
		"proto=https":                      "10.0.0.1",
		"for":                              "10.0.0.1",
		"for=":                             "10.0.0.1",
		"for=_hidden":                      "10.0.0.1",
		"for=unknown":                      "10.0.0.1",
		`for="[2001:db8:1::1]:4711"`:       "2001:db8:1::/56",
		`host="a;for=198.51.100.1"; For="1.2.3.4"`: "1.2.3.4",
		`for=198.51.100.1;host="`:                  "10.0.0.1",
	} {
		if got := clientOf(proxy, []string{"Forwarded: " + line}, proxies(ratehttp.Forwarded)); got != want {
			t.Errorf("Forwarded %q: the client is %s, not %s", line, got, want)
		}
	}
}

// An element that takes the last byte that is read of a header leaves none for the
// lines before it.
func TestLineAsLongAsTheBound(t *testing.T) {
	for length := 4000; length < 4200; length++ {
		last := "for=10.0.0.2;by="
		last += strings.Repeat("a", length-len(last))
		want := "10.0.0.2"
		if length+1+len("for=203.0.113.7") <= 4096 {
			want = "203.0.113.7"
		} else if length > 4096 {
			want = "10.0.0.1"
		}
		lines := []string{"Forwarded: for=203.0.113.7", "Forwarded: " + last}
		if got := clientOf(proxy, lines, proxies(ratehttp.Forwarded)); got != want {
			t.Errorf("after a line of %d bytes the client is %s, not %s", length, got, want)
		}
	}
}

// A peer without an address is trusted when the program says so, and has a key that
// no client can have otherwise.
func TestClientIPOfUnixSocket(t *testing.T) {
	lines := []string{"X-Forwarded-For: 203.0.113.7"}
	for _, peer := range []string{"", "@", "/run/app.sock"} {
		limittest.Equal(t, peer, clientOf(peer, lines), "unknown")
		limittest.Equal(t, peer+", proxies", clientOf(peer, lines, proxies(ratehttp.XForwardedFor)), "unknown")
		for _, opts := range [][]ratehttp.Option{{ratehttp.WithTrustedUnixSocket()}, {ratehttp.WithTrustedUnixSocket(), proxies(ratehttp.XForwardedFor)}} {
			limittest.Equal(t, peer+", trusted", clientOf(peer, lines, opts...), "203.0.113.7")
			limittest.Equal(t, peer+", trusted, no header", clientOf(peer, nil, opts...), "unknown")
		}
	}
	limittest.Equal(t, "a peer with an address", clientOf("203.0.113.8:1", lines, ratehttp.WithTrustedUnixSocket()), "203.0.113.8")
}

func TestIPv6Prefix(t *testing.T) {
	for bits, want := range map[int]string{
		1: "::/1", 32: "2001:db8::/32", 64: "2001:db8:1:2::/64", 127: "2001:db8:1:2:3:4:5:6/127", 128: "2001:db8:1:2:3:4:5:6",
	} {
		if got := clientOf("[2001:db8:1:2:3:4:5:6]:1", nil, ratehttp.WithIPv6Prefix(bits)); got != want {
			t.Errorf("/%d: %s, not %s", bits, got, want)
		}
		if got := clientOf("203.0.113.7:1", nil, ratehttp.WithIPv6Prefix(bits)); got != "203.0.113.7" {
			t.Errorf("/%d changes an IPv4 address: %s", bits, got)
		}
	}
}

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
