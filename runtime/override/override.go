// Package override has two sources of overrides for a limiter: a file, and a
// hash in Redis. They switch limits off and change their max, window and mode
// while the program runs.
//
//	limiter := runtime.New(store, runtime.WithOverrides(override.File("/etc/limits.yaml"), 0))
//	defer limiter.Close()
//
// A file is JSON or YAML:
//
//	enabled: true                   # false takes all limits away
//	rules:
//	  orders.Service.Create:        # the rule's name
//	    max: 10
//	    window: 5s
//	  orders.Service.List:
//	    mode: shadow                # or enforce
//	  orders.Service.Export:
//	    enabled: false              # takes this limit away
//
// Every field may be left out, and leaves the rule as it was declared. The field
// until, a time of RFC 3339 such as 2026-11-22T15:00:00Z, ends what is said beside
// it: from then on it has no effect. Each process goes by its own clock, and looks
// at it at every interval, also while the file or Redis cannot be read.
//
// The field
// keys changes a rule for single keys, by the patterns of [runtime.Override]:
//
//	rules:
//	  orders.Service.Create:
//	    max: 10
//	    keys:
//	      "premium-*": {max: 1000}    # each key that starts with premium-
//	      "tenant-7": {enabled: false}
//
// In Redis a field of the hash is a rule, and its value an object in JSON. A
// field that is a list in JSON is a rule and a pattern:
//
//	HSET limits orders.Service.Create '{"max": 10, "window": "5s"}'
//	HSET limits '["orders.Service.Create", "premium-*"]' '{"max": 1000}'
//	HSET limits '*' '{"enabled": false}'
//
// The field * is for all limits, and says "enabled" and "until" only. A rule whose name starts
// with a bracket is written as a list of one.
//
// A window is written as in a directive: 500ms, 10s, 1h30m or 7d. Both sources
// are strict: an unknown field, a field that comes twice or a value of another
// type is an error that says where it is, and then the last good overrides stay
// in force.
package override

import (
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/private"
)

// Bounds on what is read, so that a wrong file or hash does no harm.
const (
	maxBytes  = 16 << 20
	maxRules  = 10_000
	maxFields = 200_000 // of a hash: rules and keys
)

// readingOf returns what a file says.
func readingOf(n *node) (r reading, err error) {
	if err := n.want(object, "an object", "enabled: true and rules: {}"); err != nil {
		return r, err
	}
	for _, f := range n.fields {
		switch f.name {
		case "enabled":
			r.says.Enabled, err = f.boolean()
		case "rules":
			r.says.Rules, err = r.rules(f)
		default:
			err = f.unknown("enabled, rules")
		}
		if err != nil {
			return reading{}, err
		}
	}
	return r, nil
}

func (r *reading) rules(n *node) (map[string]runtime.Override, error) {
	if n.kind == null {
		return nil, nil // all are commented out
	}
	if err := n.want(object, "an object", `{"name of a rule": {"max": 10}}`); err != nil {
		return nil, err
	}
	if len(n.fields) > maxRules {
		return nil, n.errorf("%d rules, the most is %d", len(n.fields), maxRules)
	}
	rules := make(map[string]runtime.Override, len(n.fields))
	for _, f := range n.fields {
		of, err := r.override(f, f.name)
		if err != nil {
			return nil, private.Errorf("rule %.80q: %w", f.name, err)
		}
		rules[f.name] = of
	}
	return rules, nil
}

// override returns what is said of one rule, and of its keys.
func (r *reading) override(n *node, rule string) (runtime.Override, error) {
	var keys map[string]runtime.KeyOverride
	c, err := changeOf(n, "enabled, keys, max, mode, until, window", func(f *node) (err error) {
		keys, err = r.keys(f, rule)
		return err
	})
	if err != nil {
		return runtime.Override{}, err
	}
	r.lasts(c.Until, Target{Rule: rule})
	for key := range keys {
		r.lasts(c.Until, Target{Rule: rule, Pattern: key, Keys: true})
	}
	return runtime.Override{Enabled: c.Enabled, Max: c.Max, Window: c.Window, Mode: c.Mode, Keys: keys}, nil
}

// keys returns what is said of the keys of a rule.
func (r *reading) keys(n *node, rule string) (map[string]runtime.KeyOverride, error) {
	if n.kind == null {
		return nil, nil // all are commented out
	}
	if err := n.want(object, "an object", `{"premium-*": {"max": 1000}}`); err != nil {
		return nil, err
	}
	keys := make(map[string]runtime.KeyOverride, len(n.fields))
	for _, f := range n.fields {
		c, err := keyChangeOf(f)
		if err != nil {
			return nil, private.Errorf("key %.80q: %w", private.Text(f.name), err)
		}
		keys[f.name] = c.KeyOverride
		r.lasts(c.Until, Target{Rule: rule, Pattern: f.name, Keys: true})
	}
	return keys, nil
}

// keyChangeOf returns what is said of one key.
func keyChangeOf(n *node) (Change, error) {
	const known = "enabled, max, mode, until, window"
	return changeOf(n, known, func(f *node) error { return f.unknown(known) })
}

// changeOf returns what is said of one rule or key, and calls keys with the field
// of this name.
func changeOf(n *node, known string, keys func(*node) error) (c Change, err error) {
	if err := n.want(object, "an object", `{"max": 10, "window": "5s"}`); err != nil {
		return c, err
	}
	for _, f := range n.fields {
		switch f.name {
		case "enabled":
			c.Enabled, err = f.boolean()
		case "max":
			c.Max, err = f.integer()
		case "window":
			c.Window, err = f.duration()
		case "mode":
			c.Mode, err = f.mode()
		case "until":
			c.Until, err = f.time()
		case "keys":
			err = keys(f)
		default:
			err = f.unknown(known)
		}
		if err != nil {
			return Change{}, err
		}
	}
	return c, nil
}

// allOf returns what is said of all rules in a field of its own.
func allOf(n *node) (c Change, err error) {
	if err := n.want(object, "an object", `{"enabled": false}`); err != nil {
		return c, err
	}
	for _, f := range n.fields {
		switch f.name {
		case "enabled":
			c.Enabled, err = f.boolean()
		case "until":
			c.Until, err = f.time()
		default:
			err = f.unknown("enabled, until; a max, mode or window belongs to a rule's own name")
		}
		if err != nil {
			return Change{}, err
		}
	}
	return c, nil
}
