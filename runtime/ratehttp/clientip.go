package ratehttp

import (
	"context"
	"net/netip"
	"slices"
	"sync"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/report"
)

// unknownClient is the key of all clients whose address is not known. It is no
// address, so no client can have it as its own.
const unknownClient = "unknown"

type clientKey struct{}

// ClientIP returns the client of a call as a part of a key: its IPv4 address, or the
// network that its IPv6 address is in, which has 56 bits unless [WithIPv6Prefix] says
// otherwise. An address of a local network, fe80::/10 or fc00::/7, stands for itself unless that
// is given, since all of the network's have the same bits. ctx is the context of a request that has passed [Middleware] or a [RequestLimit],
// or of a call of gRPC or Connect that has passed the interceptors of this library; in a
// directive it is written key=ratehttp.ClientIP(#ctx).
//
// The client is the peer of the connection, unless [WithTrustedProxies] has that peer
// in it, or [WithTrustedHops] counts it. Then it is the last address in the proxies'
// header that is no trusted proxy. An entry that is no address ends the search, as 64
// entries and 4,096 bytes do: the client then is the proxy that has written it. If all
// entries are trusted the client is the first of them. An IPv4 address that is written
// in IPv6, mapped or translated by NAT64 (64:ff9b::/96), is that IPv4 address.
//
// Without any address ClientIP returns "unknown". All such clients share one limit,
// so a missing middleware shows as refusals, and not as a limit that does not hold.
func ClientIP(ctx context.Context) string {
	switch client := ctx.Value(clientKey{}).(type) {
	case string:
		return client
	case *caller:
		return client.ip()
	}
	standard.checks.warn(report.NoClient, "")
	return unknownClient
}

// WithClientIP returns a context whose client has this address, for tests and for
// programs that find it in a way of their own. An invalid address is an unknown one.
func WithClientIP(ctx context.Context, addr netip.Addr) context.Context {
	c := &standard.clients
	if found, ok := ctx.Value(clientKey{}).(*caller); ok {
		c = found.clients
	}
	return context.WithValue(ctx, clientKey{}, c.group(addr))
}

// Clients find the clients of calls that do not come by net/http. Package raterpc has
// them for gRPC and Connect; programs need them for another transport alone.
type Clients struct{ clients clients }

// NewClients returns Clients with options.
func NewClients(opts ...ClientOption) *Clients {
	return &Clients{newConfig(opts).clients}
}

// A Peer is the other end of the connection of a call.
type Peer interface {
	// Addr returns its address, with or without a port.
	Addr() string
	// Header returns the lines of a header or of metadata, whose name it finds in any
	// case.
	Header(name string) []string
}

// Begin returns a context in which [ClientIP] knows the client of a call from a peer.
// In the context of a request that has passed [Middleware] the client stays as it is. The
// error is [ErrNetworkRefused] if the call is not to be served, and otherwise nil.
func (c *Clients) Begin(ctx context.Context, peer Peer) (context.Context, error) {
	if exchangeOf(ctx) != nil {
		return ctx, nil
	}
	found := &caller{clients: &c.clients, remote: peer}
	exempt, refused := found.network()
	if refused {
		return ctx, ErrNetworkRefused
	}
	ctx = context.WithValue(ctx, clientKey{}, found)
	if exempt {
		ctx = runtime.WithoutLimits(ctx)
	}
	return ctx, nil
}

// Claim stops [Middleware] and [RequestLimit] from reporting further limits of a request.
// Interceptors call it to report those themselves, so that each is reported once.
func Claim(ctx context.Context) {
	if e := exchangeOf(ctx); e != nil {
		e.record.Pause()
	}
}

// A caller is the client of a call, whom nobody looks for before somebody asks.
type caller struct {
	clients   *clients
	remote    Peer // or nil, if begin was called
	peer      string
	forwarded []string // the lines of the trusted proxies' header
	proxied   bool     // there is a header that nobody was told to read
	other     bool     // there is another header than the one that is read

	once   sync.Once
	addr   netip.Addr
	client string
}

func (c *caller) begin(by *clients, peer string, header func(name string) []string) {
	c.clients, c.peer = by, peer
	if by.header != "" {
		if c.forwarded = header(by.header); c.forwarded == nil && by.checks.due(report.OtherHeader) {
			c.other = header(XForwardedFor) != nil || header(Forwarded) != nil
		}
	} else if by.unix {
		c.forwarded = header(XForwardedFor)
	} else {
		c.proxied = by.checks.due(report.UntrustedProxy) && slices.ContainsFunc(forwarding[:], func(name string) bool { return header(name) != nil })
	}
}

// forwarding are headers by which proxies name a client.
var forwarding = [...]string{XForwardedFor, Forwarded, "X-Real-Ip", "Cf-Connecting-Ip", "True-Client-Ip"}

func (c *caller) find() {
	c.once.Do(func() {
		if c.remote != nil {
			c.begin(c.clients, c.remote.Addr(), c.remote.Header)
		}
		c.addr = c.clients.client(c.peer, c.forwarded)
		c.client = c.clients.group(c.addr)
		if c.forwarded != nil && c.clients.header != "" && c.clients.checks.due(report.UntrustedPeer) {
			addr, ok := peerAddr(c.peer)
			c.clients.checks.peer(!ok || c.clients.trusts(addr, 0))
		}
	})
}

func (c *caller) ip() string {
	c.find()
	c.check()
	return c.client
}

// check reports that the client is a proxy.
func (c *caller) check() {
	if c.proxied {
		c.clients.checks.warn(report.UntrustedProxy, "")
	}
	if addr, ok := peerAddr(c.peer); c.other && ok && c.clients.trusts(addr, 0) {
		c.clients.checks.warn(report.OtherHeader, "")
	}
}

// network reports how the network of the client is treated.
func (c *caller) network() (exempt, refused bool) {
	if c.clients.networks == nil {
		return false, false
	}
	c.find()
	if exempt, refused = c.clients.networks.lists(c.addr); exempt || refused {
		c.check()
	}
	return exempt, refused
}

// client returns the client of a request from a peer. The header has these lines.
func (c *clients) client(peer string, forwarded []string) netip.Addr {
	addr, ok := peerAddr(peer)
	passed := 0 // proxies, of which the peer is the first
	if !ok && !c.unix {
		c.checks.warn(report.UnknownPeer, "")
		return addr
	}
	if ok && !c.trusts(addr, passed) {
		return addr
	}
	for nodes := (chain{lines: forwarded, quote: c.header == Forwarded}); ; {
		node, more := nodes.next()
		if !more {
			return addr
		}
		if c.header == Forwarded {
			node, _ = forwardedFor(node)
		}
		hop, ok := parseNode(node)
		if !ok {
			c.checks.warn(report.NoAddress, "")
			return addr
		}
		passed++
		addr = hop
		if !c.trusts(hop, passed) {
			return addr
		}
	}
}

// trusts reports whether an address, before which others have been passed, is that of
// a trusted proxy.
func (c *clients) trusts(addr netip.Addr, passed int) bool {
	if passed < c.hops {
		return true
	}
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
		return canonical(peer.Addr()), true
	}
	addr, err := netip.ParseAddr(remote)
	return canonical(addr), err == nil
}

// group returns the key of the clients that count as one with an address.
func (c *clients) group(addr netip.Addr) string {
	addr = canonical(addr)
	if !addr.IsValid() {
		return unknownClient
	}
	bits := c.bits
	if bits == 0 {
		bits = defaultIPv6
		if addr.IsLinkLocalUnicast() || addr.IsPrivate() {
			bits = 128
		}
	}
	if network, err := addr.Prefix(bits); addr.Is6() && bits < 128 && err == nil {
		return network.String()
	}
	return addr.String()
}
