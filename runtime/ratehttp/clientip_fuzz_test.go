package ratehttp_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/rategen/rategen/runtime/ratehttp"
)

// Whatever a peer sends, its key is the address of somebody: of a peer that is not
// trusted its own, and otherwise that of an entry, or of the proxy.
func FuzzClientIP(f *testing.F) {
	f.Add("10.0.0.1:1", "203.0.113.7, 10.0.0.2", false)
	f.Add("10.0.0.1:1", `for="[2001:db8::1]:4711";by=x, for=_a`, true)
	f.Add("203.0.113.7:1", "\x00,,\"", false)
	f.Add("@", `"\"`, true)
	f.Add("[64:ff9b::10.0.0.1]:1", "64:ff9b::203.0.113.7", false)
	f.Fuzz(func(t *testing.T, peer, header string, forwarded bool) {
		name := ratehttp.XForwardedFor
		if forwarded {
			name = ratehttp.Forwarded
		}
		lines := strings.Split(header, "\n")
		for i := range lines {
			lines[i] = name + ": " + lines[i]
		}
		got := clientOf(peer, lines, proxies(name))
		if got == "unknown" {
			if _, err := netip.ParseAddrPort(peer); err == nil {
				t.Fatalf("%q has no client", peer)
			}
			return
		}
		addr, err := netip.ParseAddr(got)
		if err != nil {
			prefix, err := netip.ParsePrefix(got)
			if err != nil || prefix.Bits() != 56 || prefix != prefix.Masked() {
				t.Fatalf("the client is %q", got)
			}
		} else if !addr.Is4() && !addr.IsLinkLocalUnicast() && !addr.IsPrivate() {
			t.Fatalf("the client is %q", got)
		}
		if alone := clientOf(peer, nil, proxies(name)); !strings.HasPrefix(alone, "10.") && !strings.HasPrefix(alone, "192.168.") &&
			!strings.HasPrefix(alone, "2001:db8:ffff:") && got != alone {
			t.Fatalf("a peer %s that nobody trusts is %s", alone, got)
		}
		// Another transport finds the same, and however many hops are trusted it is
		// somebody: an entry, the peer, or nobody.
		values := make([]string, len(lines))
		for i := range lines {
			values[i] = strings.TrimPrefix(lines[i], name+": ")
		}
		from := remote{peer, map[string][]string{strings.ToLower(name): values}}
		if other := begun(t, from, proxies(name).(ratehttp.ClientOption)); other != got {
			t.Fatalf("a request is %s, another call %s", got, other)
		}
		counted := begun(t, from, ratehttp.WithTrustedHops(name, 1+len(header)%70))
		if _, err := netip.ParsePrefix(counted); err != nil && counted != "unknown" {
			if addr, err := netip.ParseAddr(counted); err != nil || !addr.Is4() && !addr.IsLinkLocalUnicast() && !addr.IsPrivate() {
				t.Fatalf("by hops the client is %q", counted)
			}
		}
		// What a proxy appends is believed, whatever stands before it.
		own := "203.0.113.9"
		if forwarded {
			own = "for=203.0.113.9"
		}
		last := len(lines) - 1
		lines[last] += ", " + own
		if got := clientOf(proxy, lines, proxies(name)); got != "203.0.113.9" {
			t.Fatalf("%q: the client is %s, not what the proxy says", lines, got)
		}
	})
}

// begun returns the client of a call from a peer.
func begun(t *testing.T, from remote, opts ...ratehttp.ClientOption) string {
	ctx, err := ratehttp.NewClients(append(opts, ratehttp.WithLogger(silent))...).Begin(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	return ratehttp.ClientIP(ctx)
}
