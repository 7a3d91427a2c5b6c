package raterpc

import (
	"fmt"
	"strings"
)

// withoutPackage is the default of [WithPolicyName]. A generated name begins with that
// of a package.
func withoutPackage(rule string) string {
	if _, rest, ok := strings.Cut(rule, "."); ok && rest != "" {
		return rest
	}
	return rule
}

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
