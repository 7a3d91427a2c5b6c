package ratehttp

import (
	"context"
	"net/netip"
)

// unknownClient is the key of all clients whose address is not known. It is no
// address, so no client can have it as its own.
const unknownClient = "unknown"

type clientKey struct{}

// ClientIP returns the client of a request as a part of a key: its IPv4 address, or
// the network that its IPv6 address is in, which has 56 bits unless [WithIPv6Prefix]
// says otherwise. ctx is the context of a request that has passed [Middleware] or a
// [Limit]; in a directive it is written key=ratehttp.ClientIP(#ctx).
//
// The client is the peer of the connection, unless [WithTrustedProxies] has that peer
// in it. Then it is the last address in the proxies' header that is no trusted proxy.
// An entry that is no address ends the search, as 64 entries and 4,096 bytes do: the
// client then is the proxy that has written it. If all entries are trusted the client
// is the first of them.
//
// Without any address ClientIP returns "unknown". All such clients share one limit,
// so a missing middleware shows as refusals, and not as a limit that does not hold.
func ClientIP(ctx context.Context) string {
	if client, ok := ctx.Value(clientKey{}).(string); ok {
		return client
	}
	if e := exchangeOf(ctx); e != nil {
		return e.clientIP()
	}
	standard.checks.warn(noClient)
	return unknownClient
}

// WithClientIP returns a context whose client has this address, for tests and for
// programs that find it in a way of their own. An invalid address is an unknown one.
func WithClientIP(ctx context.Context, addr netip.Addr) context.Context {
	c := standard
	if e := exchangeOf(ctx); e != nil {
		c = e.config
	}
	return context.WithValue(ctx, clientKey{}, c.group(addr))
}

// client returns the client of a request from a peer. The header has these lines.
func (c *config) client(peer string, forwarded []string) netip.Addr {
	addr, ok := peerAddr(peer)
	switch {
	case !ok && !c.unix:
		c.checks.warn(unknownPeer)
		return addr
	case ok && !c.trusts(addr):
		return addr
	}
	for hops := (chain{lines: forwarded, quote: c.header == Forwarded}); ; {
		node, more := hops.next()
		if !more {
			return addr
		}
		if c.header == Forwarded {
			if node, ok = forwardedFor(node); !ok {
				return addr
			}
		}
		hop, ok := parseNode(node)
		if !ok {
			return addr
		}
		if addr = hop; !c.trusts(hop) {
			return addr
		}
	}
}

func (c *config) trusts(addr netip.Addr) bool {
	for _, p := range c.trusted {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// peerAddr returns the address in the RemoteAddr of a request.
func peerAddr(remote string) (addr netip.Addr, ok bool) {
	if peer, err := netip.ParseAddrPort(remote); err == nil {
		return peer.Addr().Unmap().WithZone(""), true
	}
	addr, err := netip.ParseAddr(remote)
	return addr.Unmap().WithZone(""), err == nil
}

// group returns the key of the clients that count as one with an address.
func (c *config) group(addr netip.Addr) string {
	addr = addr.Unmap().WithZone("")
	if !addr.IsValid() {
		return unknownClient
	}
	if network, err := addr.Prefix(c.bits); addr.Is6() && c.bits < 128 && err == nil {
		return network.String()
	}
	return addr.String()
}
