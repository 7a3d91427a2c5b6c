package employee

import (
	"net/netip"
	"testing"
)

func TestClientIP(t *testing.T) {
	for ip, want := range map[string]string{
		"203.0.113.7":          "203.0.113.7",
		"::ffff:203.0.113.7":   "203.0.113.7",
		"2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64",
		"2001:db8:1:2:ffff::1": "2001:db8:1:2::/64",
		"fe80::1%eth0":         "fe80::/64",
	} {
		if got := clientIP(WithClientIP(t.Context(), netip.MustParseAddr(ip))); got != want {
			t.Errorf("%s counts against %s, not %s", ip, got, want)
		}
	}
	if got := clientIP(t.Context()); got != "unknown" {
		t.Errorf("a call without a client counts against %q", got)
	}
}
