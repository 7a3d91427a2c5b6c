package employee

import (
	"context"
	"net/netip"
)

type clientIPKey struct{}

// WithClientIP returns a context that says for whom a call is made.
func WithClientIP(ctx context.Context, ip netip.Addr) context.Context {
	return context.WithValue(ctx, clientIPKey{}, ip)
}

// clientIP returns whose budget a call counts against: the client's IPv4
// address or, because a client usually has a whole /64 of IPv6 addresses to
// change between, that network. Calls without a client share one budget, so
// that forgetting WithClientIP shows as refusals and not as a missing limit.
func clientIP(ctx context.Context) string {
	ip, ok := ctx.Value(clientIPKey{}).(netip.Addr)
	if !ok || !ip.IsValid() {
		return "unknown"
	}
	ip = ip.Unmap().WithZone("")
	if ip.Is4() {
		return ip.String()
	}
	network, _ := ip.Prefix(64) // 64 bits fit every IPv6 address
	return network.String()
}
