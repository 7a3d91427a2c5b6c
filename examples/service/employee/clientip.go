package employee

import (
	"context"
	"net/netip"
)

type clientIPKey struct{}

// WithClientIP returns a context with the address of the client of a call.
func WithClientIP(ctx context.Context, ip netip.Addr) context.Context {
	return context.WithValue(ctx, clientIPKey{}, ip)
}

// clientIP returns the key of a client's budget: its IPv4 address, or its /64
// network of IPv6 addresses, because a client usually has a whole one to choose
// from. Calls without a client share one budget. So a forgotten WithClientIP shows
// as denials, and not as a missing limit.
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
