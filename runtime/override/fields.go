package override

import (
	"slices"
	"strings"
	"time"

	"github.com/rategen/rategen/runtime"
)

// Which fields an override has depends on what it is for.
const (
	allFields  = "enabled, until"
	ruleFields = "enabled, keys, max, mode, until, window"
	keyFields  = "allow, block, enabled, max, mode, until, window"
)

// changeOf returns what is said of all limits, of a rule or of keys, and the end of
// all that is said. It calls keys with the field of this name.
func changeOf(n *node, known string, keys func(*node) error) (c Change, until time.Time, err error) {
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
		switch is := slices.Contains(strings.Split(known, ", "), name); {
		case !is, part != "" && !slices.Contains(fieldNames, name), part == thenPart && (name == "allow" || name == "block"):
			err = f.unknown(known + hint(known))
		case part == untilPart:
			ends[name], err = f.time()
		case part == thenPart:
			err = f.into(name, &c.Then)
		case name == "until":
			until, err = f.time()
		case name == "keys":
			err = keys(f)
		case name == "allow":
			c.Allow, err = f.flag()
		case name == "block":
			c.Block, err = f.flag()
		default:
			err = f.into(name, &c.KeyOverride)
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
	case ruleFields:
		return ", and max_until, max_then and so on; block and allow are for keys"
	}
	return ", and max_until, max_then and so on"
}

// into reads the value of a field into an override.
func (n *node) into(field string, k *runtime.KeyOverride) (err error) {
	switch field {
	case "enabled":
		k.Enabled, err = n.boolean()
	case "max":
		k.Max, err = n.integer()
	case "mode":
		k.Mode, err = n.mode()
	case "window":
		k.Window, err = n.duration()
	}
	return err
}

// flag reads a field that is as if it were left out if it is false.
func (n *node) flag() (bool, error) {
	is, err := n.boolean()
	return err == nil && *is, err
}
