package raterpc

import (
	"fmt"
	"strings"
)

// afterDot is the default of [WithPolicyName]. The part of a generated name before
// the last dot names a package and an interface.
func afterDot(rule string) string { return rule[strings.LastIndexByte(rule, '.')+1:] }

// public returns the name by which clients know a rule, or "" if they do not. It is
// printable ASCII.
func (s *Server) public(rule string) (name string) {
	defer func() {
		if recover() != nil {
			name = ""
		}
	}()
	return printable(s.policyName(rule))
}

// printable percent-encodes what is not printable ASCII. A % that stands for itself
// is kept, so that usual names stay as they are.
func printable(name string) string {
	if strings.IndexFunc(name, unprintable) < 0 {
		return name
	}
	var b strings.Builder
	for i := range len(name) {
		if c := name[i]; unprintable(rune(c)) {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func unprintable(r rune) bool { return r < ' ' || r > '~' }
