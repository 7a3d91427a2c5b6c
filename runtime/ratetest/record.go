package ratetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// shown is how many entries a failed check lists.
const shown = 50

// A record is what happened in a limiter.
type record struct {
	entries []entry
	rules   map[string]*tally // by name, of those that were met
	checked map[string]bool   // names of rules, and whether something was expected of them
}

// An entry is a line of a record.
type entry struct {
	at                       time.Duration // since the limiter was made
	rule, key, what, details string
}

// A tally is what a rule's calls add up to.
type tally struct {
	verdicts map[observe.Verdict]int
	cost     int64
	keys     map[string]bool
}

func (r *record) note(at time.Duration, rule, key, what, details string) {
	r.entries = append(r.entries, entry{at, rule, key, what, details})
}

// tally returns what a rule's calls add up to so far.
func (r *record) tally(rule string) *tally {
	t := r.rules[rule]
	if t == nil {
		t = &tally{verdicts: map[observe.Verdict]int{}, keys: map[string]bool{}}
		r.rules[rule] = t
	}
	return t
}

// decided notes what was decided about one limit of a call.
func (r *record) decided(at time.Duration, key string, charged bool, ev observe.DecisionEvent) {
	t := r.tally(ev.Rule)
	t.verdicts[ev.Verdict]++
	t.keys[key] = true
	details := fmt.Sprintf("cost %d, %d of %d left", ev.Cost, ev.Remaining, ev.Limit)
	if charged {
		t.cost += ev.Cost
	}
	if ev.RetryAfter > 0 {
		details += ", retry after " + period(ev.RetryAfter)
	}
	if ev.Source != rule.SourceStore && ev.Source != rule.SourceNone {
		details += fmt.Sprintf(", decided by: %v", ev.Source)
	}
	r.note(at, ev.Rule, key, ev.Verdict.String(), details)
}

// settled notes that a charge was settled.
func (r *record) settled(at time.Duration, c *terms.Charge) {
	r.tally(c.Label.Name).cost += c.Cost
	details := fmt.Sprintf("cost %d instead of %d", c.Charged+c.Cost, c.Charged)
	r.note(at, c.Label.Name, string(c.Label.Parts(c.Key)), "settled", details)
}

// met returns the names of the rules that calls have met.
func (s *store) met() map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := map[string]bool{}
	for name := range s.rules {
		names[name] = true
	}
	return names
}

// history returns the newest entries as text for the message of a failure.
func (r *record) history() string {
	if len(r.entries) == 0 {
		return "nothing has happened"
	}
	var b strings.Builder
	b.WriteString("this has happened:\n")
	from := max(0, len(r.entries)-shown)
	if from > 0 {
		fmt.Fprintf(&b, "  … %d more before\n", from)
	}
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, e := range r.entries[from:] {
		subject := e.rule
		if e.key != "" {
			subject += fmt.Sprintf(" %q", e.key)
		}
		if subject != "" {
			subject += "\t"
		}
		fmt.Fprintf(w, "  %s\t%s%s\t%s\n", period(e.at), subject, e.what, e.details)
	}
	_ = w.Flush() // to a strings.Builder, which does not fail
	return strings.TrimSuffix(b.String(), "\n")
}

// known lists names of rules for the message of a failure.
func known(names map[string]bool) string {
	if len(names) == 0 {
		return "no rule is registered, and none was met\n"
	}
	return fmt.Sprintf("the rules that are registered or were met: %q\n", slices.Sorted(maps.Keys(names)))
}

// period returns a duration as text.
func period(d time.Duration) string {
	if d == runtime.Never {
		return "never"
	}
	return d.String()
}

// partsOf returns the part of a Redis key that differs between callers: without the
// prefix of its rule, and without the tag of its algorithm, which has small letters
// after the %.
func partsOf(r *runtime.Rule, key string) string {
	prefix := spec.Prefix(r.Prefix, r.Name)
	if i := strings.Index(key, prefix); i >= 0 {
		key = key[i+len(prefix):]
	}
	for i := range len(key) - 1 {
		if c := key[i+1]; key[i] == '%' && 'a' <= c && c <= 'z' &&
			!strings.HasPrefix(key[i:], "%invalid") && !strings.HasPrefix(key[i:], "%sha256-") {
			return key[:i]
		}
	}
	return key
}
