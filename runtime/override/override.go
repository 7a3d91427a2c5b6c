// Package override reads overrides for a limiter from a file, or from a hash in
// Redis. They switch limits off and change their max, burst, window and mode, and the weights of
// shares, while the program runs.
//
//	limiter := runtime.New(store, runtime.WithOverrides(override.File("/etc/limits.yaml"), 0))
//	defer limiter.Close()
//
// A file is JSON or YAML:
//
//	enabled: true                   # false removes all limits
//	rules:
//	  orders.Service.Create:        # the rule's name
//	    max: 10
//	    window: 5s
//	  orders.Service.List:
//	    mode: shadow                # or enforce
//	  orders.Service.Export:
//	    enabled: false              # removes this limit
//
// An omitted field leaves the rule as it was declared. The field until, a time of RFC 3339
// such as 2026-11-22T15:00:00Z, is when the fields beside it expire. A field may have an
// expiry of its own, and a value that holds afterwards: max_until and max_then,
// block_until and block_then, and so on. Ends are judged at every interval, also while the
// file or Redis cannot be read: those in a hash by the clock of Redis, those in a file by that of the process.
//
// The field keys changes a rule for single keys, by the patterns of [rule.Override]:
//
//	rules:
//	  orders.Service.Create:
//	    max: 10
//	    keys:
//	      "premium-*": {max: 1000}    # each key that starts with premium-
//	      "tenant-7": {allow: true}   # no limit
//	      "tenant-8": {max: 50, block: true, block_until: 2026-11-22T15:00:00Z}
//
// A key has two more fields. While block is true, all its calls are refused, whatever its
// other fields and its rule say; allow removes the limit. The other fields of the key
// hold again when these have expired.
//
// The field shares has the weights of single shares of a rule that is divided, by patterns too:
//
//	rules:
//	  llm.Client.Complete:
//	    burst: 200
//	    shares:
//	      "premium-*": {weight: 4}
//
// In Redis a field of the hash is a rule, and its value an object in JSON. A
// field that is a list in JSON is a rule and a pattern, of keys or of shares:
//
//	HSET limits orders.Service.Create '{"max": 10, "window": "5s"}'
//	HSET limits '["orders.Service.Create", "premium-*"]' '{"max": 1000}'
//	HSET limits '["llm.Client.Complete", "share", "premium-*"]' '{"weight": 4}'
//	HSET limits '*' '{"enabled": false}'
//
// The field * is for all limits, and has only "enabled" and its expiry. A rule whose name
// starts with a bracket is written as a list of one.
//
// A window is written as in a directive: 500ms, 10s, 1h30m or 7d. Both sources
// are strict: an unknown field, a field that comes twice or a value of another
// type is an error that says where it is, and then the last good overrides stay
// in force.
package override

import (
	"maps"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime/internal/private"
)

// Bounds on what is read, so that a wrong file or hash does no harm.
const (
	maxBytes  = 16 << 20
	maxRules  = 10_000
	maxFields = 200_000 // of a hash: rules and keys
)

func readingOf(n *node) (r reading, err error) {
	if err := n.want(object, "an object", "enabled: true and rules: {}"); err != nil {
		return r, err
	}
	for _, f := range n.fields {
		switch f.name {
		case "enabled":
			r.overrides.Enabled, err = f.boolean()
		case "rules":
			err = r.rules(f)
		default:
			err = f.unknown("enabled, rules")
		}
		if err != nil {
			return reading{}, err
		}
	}
	r.put(time.Time{})
	return r, nil
}

func (r *reading) rules(n *node) error {
	if err := n.want(object, "an object", `{"name of a rule": {"max": 10}}`); err != nil {
		return err
	}
	if len(n.fields) > maxRules {
		return n.errorf("%d rules, the most is %d", len(n.fields), maxRules)
	}
	for _, f := range n.fields {
		if err := r.override(f, f.name); err != nil {
			return private.Errorf("rule %.80q: %w", f.name, err)
		}
	}
	return nil
}

// override adds what is said of one rule, and of its keys and shares.
func (r *reading) override(n *node, declared string) error {
	lists := make(map[string]map[string]Change)
	c, until, err := changeOf(n, fileFields, func(f *node) (err error) {
		lists[f.name], err = patternChanges(f)
		return err
	})
	if err != nil {
		return err
	}
	r.said = append(r.said, statement{target: Target{Rule: declared}, change: c})
	for list, changes := range lists {
		for _, pattern := range slices.Sorted(maps.Keys(changes)) {
			c := changes[pattern]
			if !until.IsZero() && c.Then != (Values{}) {
				return private.Errorf("%s %.80q: what holds then cannot end with the until of the rule: give the %[1]s ends of its own", list[:len(list)-1], private.Text(pattern))
			}
			r.said = append(r.said, statement{target: targetIn(declared, list, pattern), change: c.within(until)})
		}
	}
	return nil
}

// patternChanges returns what is said of the keys or shares of a rule.
func patternChanges(n *node) (map[string]Change, error) {
	of, example := targetIn("", n.name, ""), `{"premium-*": {"max": 1000}}`
	if of.Shares {
		example = `{"premium-*": {"weight": 4}}`
	}
	if err := n.want(object, "an object", example); err != nil {
		return nil, err
	}
	changes := make(map[string]Change, len(n.fields))
	for _, f := range n.fields {
		c, _, err := changeOf(f, of.known(), nil)
		if err != nil {
			return nil, private.Errorf("%s %.80q: %w", n.name[:len(n.name)-1], private.Text(f.name), err)
		}
		changes[f.name] = c
	}
	return changes, nil
}
