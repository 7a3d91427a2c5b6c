package ratehttp

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"sync/atomic"

	"github.com/rategen/rategen/runtime/ratefield"
)

// A Policy is what clients are told about a rule besides its numbers, see
// [WithPolicy].
type Policy struct {
	// Name is the policy's public name, in the fields and in problem documents.
	// Bytes that are not printable ASCII are written as %XX. If it is empty the
	// name is the rule's, without the part up to the first dot, which is the
	// package: EmployeeService.GetByID. Two rules whose names differ in that part
	// only both get a tilde and eight digits made of their full names, once both
	// have been met.
	Name string
	// Unit is what the rule counts: "requests", which is also the meaning of an
	// empty Unit, "content-bytes" or "concurrent-requests".
	Unit string
	// Hidden keeps the rule out of the fields and of problem documents.
	Hidden bool
}

// maxNames is how many rules are told apart by their last parts. Programs that make
// rules while they run have more than that, and get the long form of their names.
const maxNames = 4096

// policies are the public forms of rules. They are safe for concurrent use, and to
// look up a rule that was met before takes one atomic load.
type policies struct {
	declared map[string]Policy // by the names of rules
	checks   *checks

	mu    sync.Mutex
	taken map[string]string // public name -> the rule that had it first
	known atomic.Pointer[map[string]Policy]
}

func newPolicies(declared map[string]Policy, c *checks) *policies {
	p := &policies{declared: declared, checks: c, taken: map[string]string{}}
	p.known.Store(&map[string]Policy{})
	return p
}

// of returns the public form of a rule, which has a name.
func (p *policies) of(rule string) Policy {
	if policy, ok := (*p.known.Load())[rule]; ok {
		return policy
	}
	return p.add(rule)
}

func (p *policies) add(rule string) Policy {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := *p.known.Load()
	if policy, ok := old[rule]; ok {
		return policy
	}
	policy := p.declared[rule]
	if len(old) >= maxNames {
		if policy.Name = ratefield.Printable(policy.Name); policy.Name == "" {
			policy.Name = longName(rule)
		}
		return policy
	}
	known := make(map[string]Policy, len(old)+1)
	for name, policy := range old {
		known[name] = policy
	}
	if policy.Name = ratefield.Printable(policy.Name); policy.Name == "" {
		policy.Name = shortName(rule)
	}
	if first, ok := p.taken[policy.Name]; ok {
		// The first one changes too. Otherwise the names would depend on which
		// rule a process met first, and differ between the replicas of a service.
		earlier := known[first]
		policy.Name, earlier.Name = longName(rule), longName(first)
		known[first] = earlier
		p.checks.warn(samePolicyName, "rule", first, "other", rule)
	} else {
		p.taken[policy.Name] = rule
	}
	known[rule] = policy
	p.known.Store(&known)
	return policy
}

// shortName returns the name of a rule without its package.
func shortName(rule string) string {
	if rule = ratefield.WithoutPackage(rule); rule == "" {
		return "default"
	}
	return ratefield.Printable(rule)
}

// longName returns a name that no other rule has.
func longName(rule string) string {
	sum := sha256.Sum256([]byte(rule))
	return shortName(rule) + "~" + hex.EncodeToString(sum[:4])
}

// partitionBytes is how long a partition key is: long enough that no two clients
// share one by accident.
const partitionBytes = 12

// partitionKey returns the partition key that stands for a value.
func partitionKey(secret []byte, value string) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(value))
	return string(mac.Sum(nil)[:partitionBytes])
}
