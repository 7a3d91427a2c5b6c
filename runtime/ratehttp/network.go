package ratehttp

import (
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"
)

// ErrNetworkRefused is the error of a call from a network that [Networks.Refuse] has.
var ErrNetworkRefused = errors.New("calls from this network are refused")

// Networks are clients for which no limit holds, and clients that are not served at
// all, see [WithNetworks]. Where networks overlap, the smaller one counts, and of two
// that are the same the refused one. The zero value has none. Networks are safe for
// concurrent use, and changes hold from the next call on. A call is compared with all of
// them, so there should be hundreds at most.
type Networks struct {
	exempt, refused atomic.Pointer[[]netip.Prefix]
}

// Exempt replaces the networks for which no limit holds. Be sure that nobody else can
// have such an address: see [WithTrustedProxies]. It panics if a network is invalid, or has bits
// set beyond its length: then it is not the one that was meant.
func (n *Networks) Exempt(networks ...netip.Prefix) { n.exempt.Store(canonicals(networks)) }

// Refuse replaces the networks that are not served: their calls are answered with 403
// or PERMISSION_DENIED, and charged to no limit. It panics as Exempt does. Write all networks in
// one call: those of a former one are served again.
func (n *Networks) Refuse(networks ...netip.Prefix) { n.refused.Store(canonicals(networks)) }

// lists reports how the client with an address is treated.
func (n *Networks) lists(addr netip.Addr) (exempt, refused bool) {
	if n == nil || !addr.IsValid() {
		return false, false
	}
	free, banned := longest(n.exempt.Load(), addr), longest(n.refused.Load(), addr)
	return free > banned, banned >= 0 && banned >= free
}

// longest returns the bits of the smallest network that has an address, or -1.
func longest(networks *[]netip.Prefix, addr netip.Addr) int {
	bits := -1
	if networks != nil {
		for _, p := range *networks {
			if p.Contains(addr) {
				bits = max(bits, p.Bits())
			}
		}
	}
	return bits
}

// canonicals returns networks in the form that addresses have here.
func canonicals(networks []netip.Prefix) *[]netip.Prefix {
	all := make([]netip.Prefix, len(networks))
	for i, p := range networks {
		if !p.IsValid() || p != p.Masked() {
			panic(fmt.Sprintf("ratehttp: %v is no network: write it with its length, and with zeros beyond that", p))
		}
		if p == nat64 {
			panic(fmt.Sprintf("ratehttp: %v is every client with an IPv4 address, since a translated address counts as that: name the networks that you mean", p))
		}
		all[i] = canonicalPrefix(p)
	}
	return &all
}

// nat64 is how translators write IPv4 addresses in IPv6: RFC 6052, section 2.1.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// canonical returns an address as it is compared and counted: an IPv4 address that is
// written in IPv6, mapped or translated, is that IPv4 address, and there is no zone.
func canonical(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	if nat64.Contains(addr) {
		bytes := addr.As16()
		return netip.AddrFrom4([4]byte(bytes[12:]))
	}
	return addr
}

// canonicalPrefix is canonical for networks. It panics if one would have nobody.
func canonicalPrefix(p netip.Prefix) netip.Prefix {
	if addr := canonical(p.Addr()); p.Addr().Is6() && addr.Is4() {
		if p.Bits() < 96 {
			panic(fmt.Sprintf("ratehttp: %v has no client, since an IPv4 address that is written in IPv6 counts as that: name the IPv4 networks that you mean", p))
		}
		p = netip.PrefixFrom(addr, p.Bits()-96)
	}
	return p.Masked()
}
