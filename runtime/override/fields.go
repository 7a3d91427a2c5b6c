package override

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// Which fields an override has depends on what it is for.
const (
	allFields  = "enabled, until"
	ruleFields = "burst, enabled, max, mode, until, window"
	fileFields = "burst, enabled, keys, max, mode, shares, until, window" // of a rule in a file
	keyFields  = "allow, block, burst, enabled, max, mode, until, window"

	shareFields = "until, weight"
)

// fieldNames are the fields that have an end, in the order in which they are written.
var fieldNames = []string{"allow", "block", "burst", "enabled", "max", "mode", "weight", "window"}

var settings = map[string]setting{
	"allow":   flagOf(func(v *Values) *bool { return &v.Allow }),
	"block":   flagOf(func(v *Values) *bool { return &v.Block }),
	"burst":   settingOf((*node).integer, func(v *Values) **int64 { return &v.Burst }),
	"enabled": settingOf((*node).boolean, func(v *Values) **bool { return &v.Enabled }),
	"max":     settingOf((*node).integer, func(v *Values) **int64 { return &v.Max }),
	"mode":    settingOf((*node).mode, func(v *Values) **runtime.Mode { return &v.Mode }),
	"weight":  settingOf((*node).integer, func(v *Values) **int64 { return &v.Weight }),
	"window":  settingOf((*node).duration, func(v *Values) **time.Duration { return &v.Window }),
}

// A setting is a field of an override.
type setting struct {
	has  func(v Values) bool
	read func(n *node, v *Values) error
	say  func(v Values) json.RawMessage // of one that has it
	take func(v *Values, from Values)
}

func settingOf[T any](read func(*node) (*T, error), field func(*Values) **T) setting {
	return setting{
		has: func(v Values) bool { return *field(&v) != nil },
		read: func(n *node, v *Values) (err error) {
			*field(v), err = read(n)
			return err
		},
		say: func(v Values) json.RawMessage {
			value := any(**field(&v))
			if named, is := value.(fmt.Stringer); is {
				value = named.String()
			}
			return json.RawMessage(encoded(value))
		},
		take: func(v *Values, from Values) { *field(v) = *field(&from) },
	}
}

// flagOf returns a setting that is as if it were left out if it is false.
func flagOf(field func(*Values) *bool) setting {
	return setting{
		has: func(v Values) bool { return *field(&v) },
		read: func(n *node, v *Values) error {
			is, err := n.boolean()
			*field(v) = err == nil && *is
			return err
		},
		say:  func(Values) json.RawMessage { return json.RawMessage("true") },
		take: func(v *Values, from Values) { *field(v) = *field(&from) },
	}
}

func values(v Values) map[string]json.RawMessage {
	m := make(map[string]json.RawMessage)
	for name, s := range settings {
		if s.has(v) {
			m[name] = s.say(v)
		}
	}
	return m
}

// overrideOf returns what is said of a rule, and of the keys and shares of another override.
func overrideOf(own rule.KeyOverride, o rule.Override) rule.Override {
	return rule.Override{Enabled: own.Enabled, Max: own.Max, Burst: own.Burst, Window: own.Window, Mode: own.Mode, Keys: o.Keys, Shares: o.Shares}
}

// patternsOf returns where an override has those of a list.
func patternsOf(o *rule.Override, list string) *map[string]rule.KeyOverride {
	if list == "shares" {
		return &o.Shares
	}
	return &o.Keys
}

// changeOf returns what is said of all limits, of a rule or of keys, and the end of
// all that is said. It calls patterns with the fields keys and shares, of which a hash has none.
func changeOf(n *node, known string, patterns func(*node) error) (c Change, until time.Time, err error) {
	if err := n.want(object, "an object", `{"max": 10, "window": "5s"}`); err != nil {
		return c, until, err
	}
	ends := make(map[string]time.Time)
	for _, f := range n.fields {
		name, part := f.name, ""
		for _, p := range []string{untilPart, thenPart} {
			if whole, is := strings.CutSuffix(name, p); is {
				name, part = whole, p
			}
		}
		is := slices.Contains(strings.Split(known, ", "), name)
		switch {
		case !is, part != "" && !slices.Contains(fieldNames, name):
			err = f.unknown(known + hint(known))
		case part == untilPart:
			ends[name], err = f.time()
		case part == thenPart:
			err = settings[name].read(f, &c.Then)
		case name == "until":
			until, err = f.time()
		case name == "keys", name == "shares":
			err = patterns(f)
		default:
			err = settings[name].read(f, &c.Values)
		}
		if err != nil {
			return Change{}, until, err
		}
	}
	has := c.names()
	for _, name := range has {
		if ends[name].IsZero() {
			ends[name] = until
		}
	}
	for _, f := range n.fields {
		if name, is := strings.CutSuffix(f.name, untilPart); is && !slices.Contains(has, name) {
			return Change{}, until, f.errorf("%s without %s: leave it out", f.name, name)
		}
		if name, is := strings.CutSuffix(f.name, thenPart); is && (ends[name].IsZero() || !slices.Contains(has, name)) {
			return Change{}, until, f.errorf("%s needs %s and %s%s: it holds from that time on", f.name, name, name, untilPart)
		}
	}
	c.Until = until
	return c.ending(ends), until, nil
}

// hint says which fields there are beside those that are known.
func hint(known string) string {
	switch known {
	case allFields:
		return "; a max, mode or window belongs to a rule's own name"
	case fileFields:
		return ", and max_until, max_then and so on; block and allow are for keys, and weight is for shares"
	case ruleFields:
		return `, and max_until, max_then and so on; block and allow are for keys, and weight is for shares: these have fields of their own, ["rule", "key"] or ["rule", "share", "tenant"]`
	case shareFields:
		return ", and weight_until, weight_then"
	}
	return ", and max_until, max_then and so on"
}
