package raterpc

import "github.com/rategen/rategen/runtime/ratefield"

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
