package raterpc

import (
	"strings"

	"github.com/rategen/rategen/runtime/ratefield"
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
	return ratefield.Printable(s.policyName(rule))
}
