package ratepage

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// WithHosts names the hosts, without ports, by which browsers know the page. A request for
// another name is answered with 421, so that nobody can have a name of theirs stand for the
// server's address and then read the page, or act (DNS rebinding). Addresses are always served:
// nobody can have these stand for others. It panics if a host has a port or a scheme.
func WithHosts(hosts ...string) Option {
	for _, host := range hosts {
		if host == "" || strings.ContainsAny(host, ":/ ") {
			panic(fmt.Sprintf("ratepage: host %q: write a name without scheme and port, as in limits.example.com", host))
		}
	}
	return func(p *Page) {
		p.hosts = slices.Clone(hosts)
	}
}

// serves reports whether a request is for a host of the page.
func (p *Page) serves(r *http.Request) bool {
	if p.hosts == nil {
		return true
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(host, ".")
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return true
	}
	return slices.ContainsFunc(p.hosts, func(known string) bool { return strings.EqualFold(known, host) })
}
