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
// The field * is for all limits, and says "enabled" only. A rule whose name starts
// with a bracket is written as a list of one.
//
// A window is written as in a directive: 500ms, 10s, 1h30m or 7d. Both sources
// are strict: an unknown field, a field that comes twice or a value of another
// type is an error that says where it is, and then the last good overrides stay
// in force.
package override

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rategen/rategen/runtime"
)

// Bounds on what is read, so that a wrong file or hash does no harm.
const (
	maxBytes  = 16 << 20
	maxRules  = 10_000
	maxFields = 200_000 // of a hash: rules and keys
)

// overridesOf returns what a file says.
func overridesOf(n *node) (o runtime.Overrides, err error) {
	if err := n.want(object, "an object", "enabled: true and rules: {}"); err != nil {
		return o, err
	}
	for _, f := range n.fields {
		switch f.name {
		case "enabled":
			o.Enabled, err = f.boolean()
		case "rules":
			o.Rules, err = f.rules()
		default:
			err = f.unknown("enabled, rules")
		}
		if err != nil {
			return runtime.Overrides{}, err
		}
	}
	return o, nil
}

func (n *node) rules() (map[string]runtime.Override, error) {
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
		of, err := overrideOf(f)
		if err != nil {
			return nil, fmt.Errorf("rule %.80q: %w", f.name, err)
		}
		rules[f.name] = of
	}
	return rules, nil
}

// overrideOf returns what is said of one rule.
func overrideOf(n *node) (of runtime.Override, err error) {
	if err := n.want(object, "an object", `{"max": 10, "window": "5s"}`); err != nil {
		return of, err
	}
	for _, f := range n.fields {
		switch f.name {
		case "enabled":
			of.Enabled, err = f.boolean()
		case "max":
			of.Max, err = f.integer()
		case "window":
			of.Window, err = f.duration()
		case "mode":
			of.Mode, err = f.mode()
		case "keys":
			of.Keys, err = f.keys()
		default:
			err = f.unknown("enabled, keys, max, mode, window")
		}
		if err != nil {
			return runtime.Override{}, err
		}
	}
	return of, nil
}

// keys returns what is said of the keys of a rule.
func (n *node) keys() (map[string]runtime.KeyOverride, error) {
	if n.kind == null {
		return nil, nil // all are commented out
	}
	if err := n.want(object, "an object", `{"premium-*": {"max": 1000}}`); err != nil {
		return nil, err
	}
	keys := make(map[string]runtime.KeyOverride, len(n.fields))
	for _, f := range n.fields {
		of, err := keyOverrideOf(f)
		if err != nil {
			return nil, fmt.Errorf("key %.80q: %w", f.name, err)
		}
		keys[f.name] = of
	}
	return keys, nil
}

// keyOverrideOf returns what is said of one key.
func keyOverrideOf(n *node) (runtime.KeyOverride, error) {
	for _, f := range n.fields {
		if f.name == "keys" {
			return runtime.KeyOverride{}, f.unknown("enabled, max, mode, window")
		}
	}
	of, err := overrideOf(n)
	return runtime.KeyOverride{Enabled: of.Enabled, Max: of.Max, Window: of.Window, Mode: of.Mode}, err
}

// allOf returns what is said of all rules in a field of its own.
func allOf(n *node) (enabled *bool, err error) {
	if err := n.want(object, "an object", `{"enabled": false}`); err != nil {
		return nil, err
	}
	for _, f := range n.fields {
		if f.name != "enabled" {
			return nil, f.unknown("enabled; a max, mode or window belongs to a rule's own name")
		}
		if enabled, err = f.boolean(); err != nil {
			return nil, err
		}
	}
	return enabled, nil
}

func (n *node) boolean() (*bool, error) {
	if err := n.want(boolean, "a boolean", "true or false"); err != nil {
		return nil, err
	}
	return new(n.text == "true"), nil
}

func (n *node) integer() (*int64, error) {
	if err := n.want(number, "a whole number", "10"); err != nil {
		return nil, err
	}
	i, err := strconv.ParseInt(n.text, 10, 64)
	if err != nil || strconv.FormatInt(i, 10) != n.text { // as 010, which is 8 to some
		return nil, n.errorf("%s is %.40s: write a whole number such as 10", n.name, n.text)
	}
	return &i, nil
}

func (n *node) mode() (*runtime.Mode, error) {
	if err := n.want(text, "text", "enforce or shadow"); err != nil {
		return nil, err
	}
	for _, m := range []runtime.Mode{runtime.Enforce, runtime.Shadow} {
		if n.text == m.String() {
			return &m, nil
		}
	}
	return nil, n.errorf("unknown mode %.40q: write enforce or shadow", n.text)
}

func (n *node) duration() (*time.Duration, error) {
	if err := n.want(text, "text with a unit", `"10s"`); err != nil {
		return nil, err
	}
	d, err := time.ParseDuration(n.text)
	if days, ok := strings.CutSuffix(n.text, "d"); ok {
		var whole uint64
		whole, err = strconv.ParseUint(days, 10, 16)
		d = time.Duration(whole) * 24 * time.Hour
	}
	if err != nil {
		return nil, n.errorf("window %.40q is not a duration: write one such as 500ms, 10s, 1h30m or 7d", n.text)
	}
	return &d, nil
}
