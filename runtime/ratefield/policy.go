package ratefield

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"github.com/rategen/rategen/runtime/internal/findings"
	"github.com/rategen/rategen/runtime/internal/report"
)

// An Audience is who is told about a limit.
type Audience uint8

const (
	// Public limits are in the fields, and in the answers to refused calls.
	Public Audience = iota
	// Internal limits hold for clients that are not told of them: no answer has their
	// name or numbers. A refusal has the rule's message and the time to come back.
	Internal
	// Outgoing limits are on calls that the service makes itself, to another service
	// say. Clients are not told of them. A refusal by one is no client's fault: it is
	// answered with 503 or UNAVAILABLE. A [runtime.Rule.Outgoing] is, as those of package
	// rateclient are, unless a policy for its very name says otherwise.
	Outgoing
)

// A Policy is what clients are told about a rule besides its numbers.
type Policy struct {
	// Name is the policy's public name. Bytes that are not printable ASCII are written
	// as %XX. If it is empty the name is that of [PublicName].
	Name string
	// Unit is what the rule counts: "requests", which is also the meaning of an empty
	// Unit, "content-bytes" or "concurrent-requests", which limits on calls in flight
	// have by themselves.
	Unit string
	// Audience is who is told. Its zero value is [Public].
	Audience Audience
}

// Check returns an error if the policy cannot be that of a rule, or of all rules whose
// names match a pattern that ends in "*".
func (p Policy) Check(rule string) error {
	switch p.Unit {
	case "", "requests", "content-bytes", "concurrent-requests":
	default:
		return fmt.Errorf("the unit %q of rule %q is not requests, content-bytes or concurrent-requests", p.Unit, rule)
	}
	if p.Audience > Outgoing {
		return fmt.Errorf("the audience %d of rule %q is unknown", p.Audience, rule)
	}
	if strings.HasSuffix(rule, "*") && p.Name != "" {
		return fmt.Errorf("the pattern %q cannot give all its rules the name %q: name each rule", rule, p.Name)
	}
	return nil
}

// PublicName returns the name of a rule that has no other public one. A name that is
// generated, of a type and a method, loses its package: shop.Orders.Place becomes
// Orders.Place, and shop.Orders becomes Orders. It is known by the last part, which
// begins in upper case. Every other name, such as articles.get, stays as it is written.
func PublicName(rule string) string {
	if _, rest, ok := strings.Cut(rule, "."); ok {
		last := rest[strings.LastIndexByte(rest, '.')+1:]
		if first, _ := utf8.DecodeRuneInString(last); unicode.IsUpper(first) {
			rule = rest
		}
	}
	if rule == "" {
		return "default"
	}
	return Printable(rule)
}

// Policies are the public forms of rules. A form depends on the rule's name and on
// what was declared, so it is the same in all replicas and never changes. They are
// safe for concurrent use.
type Policies struct {
	declared map[string]Policy // by the names of rules, with public names
	patterns []string          // without their "*", the longest first
	matching map[string]Policy // by pattern
	reserved map[string]bool   // public names that are declared
	lines    report.Lines

	mu    sync.Mutex
	taken map[string]string // public name -> the rule that had it first
	known atomic.Pointer[map[named]Policy]
}

// A named is a rule by its name. One of the service and an outgoing one may share that.
type named struct {
	rule     string
	outgoing bool
}

// maxNames is how many rules are remembered. Programs that make rules while they run
// have more than that, whose forms are found anew each time.
const maxNames = 4096

// NewPolicies returns the forms of rules. A declared name that ends in "*" is for all
// rules whose names begin like it; the longest that fits counts. Names that were declared alike
// get a tilde and eight digits, which tell nothing about their rules. Two rules of one public
// name are a finding of the process, and so is a declared name that is that of a rule but for its
// case, and so of none: each is logged once, by the logger or if that is nil [slog.Default].
func NewPolicies(declared map[string]Policy, logger *slog.Logger) *Policies {
	p := &Policies{declared: map[string]Policy{}, matching: map[string]Policy{}, reserved: map[string]bool{}, taken: map[string]string{}}
	p.lines.Loggers, p.lines.Lists = []*slog.Logger{logger}, []*findings.List{new(findings.List), &findings.Process}
	for _, rule := range slices.Sorted(maps.Keys(declared)) {
		policy := declared[rule]
		if policy.Unit == "requests" {
			policy.Unit = "" // the default need not be written
		}
		if prefix, ok := strings.CutSuffix(rule, "*"); ok {
			p.patterns = append(p.patterns, prefix)
			p.matching[prefix] = policy
			continue
		}
		if policy.Name = Printable(policy.Name); policy.Name != "" {
			p.reserved[policy.Name] = true
			if first, ok := p.taken[policy.Name]; ok {
				p.lines.Find(report.SamePolicyName, rule, "", slog.String("other", first))
				earlier := p.declared[first]
				earlier.Name = distinct(policy.Name, first)
				p.declared[first] = earlier
				policy.Name = distinct(policy.Name, rule)
			} else {
				p.taken[policy.Name] = rule
			}
		}
		p.declared[rule] = policy
	}
	slices.SortFunc(p.patterns, func(a, b string) int { return len(b) - len(a) })
	p.known.Store(&map[named]Policy{})
	return p
}

// Lookup returns the public form of a rule, of which it is told whether it is a
// [runtime.Rule.Outgoing]. Its Name is never empty. The second lookup of a rule takes an
// atomic load.
func (p *Policies) Lookup(rule string, outgoing bool) Policy {
	r := named{rule, outgoing}
	if policy, ok := (*p.known.Load())[r]; ok {
		return policy
	}
	return p.add(r)
}

// ReportUnmet reports a limit that is for a method, or a service, which the program has not. It is
// logged once, and a finding.
func (p *Policies) ReportUnmet(rule, method string) {
	p.lines.Find(report.MethodUnmet, rule, method, slog.String("method", method))
}

func (p *Policies) add(r named) Policy {
	policy, rule := p.form(r), r.rule
	p.mu.Lock()
	defer p.mu.Unlock()
	old := *p.known.Load()
	if _, ok := old[r]; ok || len(old) >= maxNames {
		return policy
	}
	if first, ok := p.taken[policy.Name]; ok && first != rule && policy.Audience == Public && p.form(named{rule: first}).Name == policy.Name {
		p.lines.Find(report.SamePolicyName, rule, "", slog.String("other", first))
	}
	if policy.Audience == Public && p.taken[policy.Name] == "" {
		p.taken[policy.Name] = rule
	}
	if _, is := p.declared[rule]; !is {
		for name := range p.declared {
			if strings.EqualFold(name, rule) {
				p.lines.Find(report.PolicyUnmet, rule, "", slog.String("declared", name))
			}
		}
	}
	known := maps.Clone(old)
	known[r] = policy
	p.known.Store(&known)
	return policy
}

// form returns the public form of a rule.
func (p *Policies) form(r named) Policy {
	rule := r.rule
	policy, ok := p.declared[rule]
	if !ok {
		for _, prefix := range p.patterns {
			if strings.HasPrefix(rule, prefix) {
				policy = p.matching[prefix]
				break
			}
		}
		if r.outgoing {
			policy.Audience = Outgoing
		}
	}
	if policy.Name == "" {
		if policy.Name = PublicName(rule); p.reserved[policy.Name] {
			policy.Name = distinct(policy.Name, rule)
		}
	}
	return policy
}

// distinct returns a name that differs from others by eight digits made of a rule's.
func distinct(name, rule string) string {
	sum := sha256.Sum256([]byte(rule))
	return name + "~" + hex.EncodeToString(sum[:4])
}
