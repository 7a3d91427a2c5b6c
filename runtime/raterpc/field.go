package raterpc

import "github.com/rategen/rategen/runtime/ratefield"

// Names of the fields of [Call.Fields], as gRPC metadata spells them.
const (
	FieldLimit  = "ratelimit"
	FieldPolicy = "ratelimit-policy"
)

// Fields returns the values of the fields [FieldLimit] and [FieldPolicy] as of now,
// as package ratefield writes them. They list every rule that the call has met, except
// rules in shadow mode, those without a public name, and the cap of a process, which
// is no quota of a client's. A value is "" if there is nothing to say.
func (c *Call) Fields() (limit, policy string) {
	if c.server.hidden {
		return "", ""
	}
	var members []ratefield.Member
	for _, e := range c.seen.all() {
		l, ok := ratefield.LimitOf(&e)
		if name := c.server.public(e.Rule); ok && name != "" {
			members = append(members, l.Member(name))
		}
	}
	return string(ratefield.AppendLimits(nil, members)), string(ratefield.AppendPolicies(nil, members))
}
