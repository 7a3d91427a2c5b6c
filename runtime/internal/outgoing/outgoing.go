// Package outgoing registers the rules that limit the program's own calls to others. Code
// that answers the program's clients leaves these limits out of its answers.
package outgoing

import "sync"

// rules are the names of the registered rules.
var rules sync.Map

// Declare registers the name of a rule for outgoing calls.
func Declare(rule string) { rules.Store(rule, true) }

// Declared reports whether a rule of this name is for outgoing calls.
func Declared(rule string) bool {
	_, ok := rules.Load(rule)
	return ok
}
