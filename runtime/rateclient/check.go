package rateclient

import (
	"fmt"
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// checkPattern returns why no request ever fits a pattern, as far as [http.ServeMux] does not
// say so itself.
func checkPattern(pattern string) error {
	method, rest, ok := strings.Cut(pattern, " ")
	if !ok {
		method, rest = "", pattern
	}
	if method != strings.ToUpper(method) {
		return fmt.Errorf("methods are in upper case: write %q", strings.ToUpper(method)+" "+strings.TrimLeft(rest, " \t"))
	}
	host, path, ok := strings.Cut(strings.TrimLeft(rest, " \t"), "/")
	if !ok {
		return nil // ServeMux refuses it
	}
	_, notAddress := netip.ParseAddr(host)
	switch {
	case strings.HasPrefix(path, "/") && strings.HasSuffix(host, ":"):
		return fmt.Errorf("it has a scheme: write %q", strings.TrimLeft(path, "/"))
	case host != strings.ToLower(host):
		return fmt.Errorf("hosts are in lower case: write %q", strings.ToLower(host)+"/"+path)
	case strings.HasPrefix(host, "["):
		return fmt.Errorf("an IPv6 address is without brackets and port: write %q", strings.Trim(host, "[]")+"/"+path)
	case notAddress != nil && strings.Contains(host, ":"):
		name, _, _ := strings.Cut(host, ":")
		return fmt.Errorf("a host is without its port, and stands for all of them: write %q", name+"/"+path)
	case strings.Contains(host, "*"):
		return fmt.Errorf("a host has no wildcards: write %q, which fits all hosts, with the Key Host, or a peer for each host", "/"+path)
	case strings.HasSuffix(host, "."):
		return fmt.Errorf("a host is without the dot at its end: write %q", strings.TrimRight(host, ".")+"/"+path)
	case strings.ContainsAny(path, "?#"):
		return fmt.Errorf("a path is without a query: leave out what follows %q", path[:strings.IndexAny(path, "?#")])
	case strings.Contains("/"+path+"/", "/./"), strings.Contains("/"+path+"/", "/../"), strings.Contains("/"+path, "//"):
		return fmt.Errorf("a path is without empty segments and dots: leave them out")
	case isService(path):
		return fmt.Errorf("a path without its last slash fits no method of the service %s: write %q", path, pattern+"/")
	}
	return nil
}

// isService reports whether a path is that of a service of gRPC or Connect, of which methods have
// paths below it: shop.v1.Orders.
func isService(path string) bool {
	if strings.Trim(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.") != "" {
		return false
	}
	first, _ := utf8.DecodeRuneInString(path[strings.LastIndexByte(path, '.')+1:])
	return strings.IndexByte(path, '.') > 0 && unicode.IsUpper(first)
}

// checkRule returns why a rule cannot be that of a peer, or never works.
func checkRule(l *PeerLimit) error {
	r, row := &l.Rule, algorithm.RowOf(l.Rule.Algorithm)
	switch {
	case r.Name == "":
		return fmt.Errorf("a rule has no Name")
	case r.Wait != 0 || r.Block != 0 || r.Lease != 0 || r.Reserve != 0 || row.Is(algorithm.Lends):
		return fmt.Errorf("rule %q: it has a Wait, a Block, a Lease or a Reserve, or is a %v: leave them out, and say by Peer.Wait how long a request may wait", r.Name, runtime.Concurrency)
	case r.Headroom != 0 && l.Tenant == nil:
		return fmt.Errorf("rule %q: it has a Headroom, and nothing says whose a request is: set Tenant, or leave Headroom out", r.Name)
	case r.Headroom == 0 && l.Tenant != nil:
		return fmt.Errorf("rule %q: it has a Tenant, and the rule divides nothing: give the rule a Headroom, or leave Tenant out", r.Name)
	case r.Period != rule.NoPeriod:
		return fmt.Errorf("rule %q: it has a Period: leave it out, and say by Window what the peer's max refers to", r.Name)
	case !r.Mode.Refuses():
		return fmt.Errorf("rule %q: a limit in %v mode holds no request back: leave Mode out, or try the limit by an override", r.Name, r.Mode)
	case r.Max < 1 || r.Window < rule.MinWindow || r.Window > rule.MaxWindow:
		return fmt.Errorf("rule %q: it admits %d in %v: Max must be above 0 and Window between %v and 366 days", r.Name, r.Max, r.Window, rule.MinWindow)
	case l.Share != nil && row.Is(algorithm.Drains):
		return fmt.Errorf("rule %q: it has a Share, and a %v does not count events: use a %v", r.Name, r.Algorithm, runtime.SlidingLog)
	case l.Margin > r.Window:
		return fmt.Errorf("rule %q: margin %v is above the window %v", r.Name, l.Margin, r.Window)
	case l.Most < 0 || l.Least < 0 || l.Most > 0 && (l.Least < 1 || l.Least > l.Most):
		return fmt.Errorf("rule %q: the peer may set from %d to %d: Least must be above 0, and not above Most", r.Name, l.Least, l.Most)
	}
	most := *r
	most.Max, most.Hold = max(r.Max, l.Most), true
	return most.Check()
}
