package ratehttp

import (
	"net/netip"
	"strings"
)

// The most that is read of a forwarding header, from its end. No chain of proxies is
// longer, so the rest is a client's.
const (
	maxForwardedHops  = 64
	maxForwardedBytes = 4096
)

// A chain reads the elements of a forwarding header from the last one, which the
// nearest proxy has written, to the first.
type chain struct {
	lines []string // in the order in which they were received
	line  string   // what is left of the current one
	quote bool     // commas in quotes do not separate elements
	hops  int      // that were read
	bytes int
}

// next returns the element before the one that it returned last. It returns false
// when there is none, or none within the bounds. Empty elements are passed over.
func (c *chain) next() (element string, ok bool) {
	for c.hops < maxForwardedHops {
		if c.line == "" {
			if len(c.lines) == 0 {
				return "", false
			}
			c.line, c.lines = c.lines[len(c.lines)-1], c.lines[:len(c.lines)-1]
		}
		readable := c.line[max(0, len(c.line)-max(0, maxForwardedBytes-c.bytes)):]
		comma := c.lastComma(readable)
		if comma < 0 && len(readable) < len(c.line) {
			return "", false
		}
		element = readable[comma+1:]
		c.line = c.line[:len(c.line)-len(readable)+max(0, comma)]
		c.bytes += len(element) + 1
		c.hops++
		if element = strings.Trim(element, " \t"); element != "" {
			return element, true
		}
	}
	return "", false
}

func (c *chain) lastComma(s string) int {
	if c.quote {
		return lastUnquoted(s, ',')
	}
	return strings.LastIndexByte(s, ',')
}

// lastUnquoted returns where sep is last in s outside a quoted string, or -1. It
// reads from the end, so that a quote which a client has opened, and never closed,
// does not swallow what proxies have added.
func lastUnquoted(s string, sep byte) int {
	quoted := false
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] == '"' {
			backslashes := 0
			for i-1-backslashes >= 0 && s[i-1-backslashes] == '\\' {
				backslashes++
			}
			if backslashes%2 == 0 {
				quoted = !quoted
			}
		} else if s[i] == sep && !quoted {
			return i
		}
	}
	return -1
}

// forwardedFor returns the parameter "for" of an element of the header Forwarded, RFC
// 7239, section 4. It returns false if there is none, or more than one.
func forwardedFor(element string) (node string, ok bool) {
	for rest := element; ; {
		semicolon := lastUnquoted(rest, ';')
		name, value, found := strings.Cut(rest[semicolon+1:], "=")
		if found && strings.EqualFold(strings.Trim(name, " \t"), "for") {
			if ok {
				return "", false
			}
			node, ok = value, true
		}
		if semicolon < 0 {
			return node, ok
		}
		rest = rest[:semicolon]
	}
}

// parseNode reads an address as proxies write it: with a port, in brackets, in quotes or in
// neither, mapped to IPv6 or with a zone. Names such as "unknown" and "_hidden", RFC
// 7239, section 6, are no addresses.
func parseNode(s string) (addr netip.Addr, ok bool) {
	s = strings.Trim(s, " \t")
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		s = s[1 : len(s)-1]
	}
	if bracketed, found := strings.CutPrefix(s, "["); found {
		host, port, closed := strings.Cut(bracketed, "]")
		if !closed || port != "" && !isPort(port) || !strings.Contains(host, ":") {
			return addr, false
		}
		s = host
	} else if colon := strings.LastIndexByte(s, ':'); colon > 0 && isPort(s[colon:]) {
		if _, err := netip.ParseAddr(s); err != nil { // not IPv6 without a port
			s = s[:colon]
		}
	}
	addr, err := netip.ParseAddr(s)
	return canonical(addr), err == nil
}

// isPort reports whether s is a colon and a port, or a colon, an underscore and a
// name that hides the port.
func isPort(s string) bool {
	digits, ok := strings.CutPrefix(s, ":")
	if !ok || digits == "" {
		return false
	}
	if digits[0] == '_' {
		return len(digits) > 1
	}
	return len(digits) <= 5 && strings.Trim(digits, "0123456789") == ""
}
