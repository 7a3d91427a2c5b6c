package runtime

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime/internal/private"
)

// maxKeys is how many keys of a rule may have overrides.
const maxKeys = 1_000_000

// ruleKeys are the overrides of the keys of a rule. They hold as much memory as
// the patterns do, and little more: patterns that change the same share it.
type ruleKeys struct {
	table   *keyTable
	changes []keyChange // what the table's values refer to
	n       int         // patterns
}

// A keyChange is a [KeyOverride] without pointers.
type keyChange struct {
	max     int64 // or ownMax
	window  time.Duration
	enabled tristate
	mode    Mode
	moded   bool // mode is set
}

// A tristate is a boolean that may be left out.
type tristate uint8

const (
	unset tristate = iota
	isFalse
	isTrue
)

func changeOf(o KeyOverride) keyChange {
	c := keyChange{max: ownMax}
	if o.Max != nil {
		c.max = *o.Max
	}
	if o.Window != nil {
		c.window = *o.Window
	}
	if o.Mode != nil {
		c.mode, c.moded = *o.Mode, true
	}
	if o.Enabled != nil {
		c.enabled = isFalse
		if *o.Enabled {
			c.enabled = isTrue
		}
	}
	return c
}

// keysOf returns the overrides of keys that o has, by rules. Those that are as
// they were are those of s. The error names the first rule and pattern that make
// no sense.
func (s *overrideSet) keysOf(o Overrides) (map[string]*ruleKeys, error) {
	var all map[string]*ruleKeys
	for _, name := range slices.Sorted(maps.Keys(o.Rules)) {
		of := o.Rules[name].Keys
		if len(of) == 0 {
			continue
		}
		keys := s.keys[name]
		if keys == nil || !keys.are(of) {
			var err error
			if keys, err = newRuleKeys(of); err != nil {
				return nil, private.Errorf("override of rule %.80q%w", name, err)
			}
		}
		if all == nil {
			all = make(map[string]*ruleKeys)
		}
		all[name] = keys
	}
	return all, nil
}

// newRuleKeys returns overrides of keys. The error begins after the rule's name.
func newRuleKeys(of map[string]KeyOverride) (*ruleKeys, error) {
	if len(of) > maxKeys {
		return nil, fmt.Errorf(": %d keys, the most is %d", len(of), maxKeys)
	}
	k := &ruleKeys{n: len(of)}
	names := slices.Sorted(maps.Keys(of))
	patterns, values := make([]pattern, len(names)), make([]uint32, len(names))
	known := make(map[keyChange]uint32)
	escaped := make(map[pattern]string) // those that differ from their names
	for i, name := range names {
		p, err := parsePattern(name)
		if err == nil {
			err = of[name].check()
		}
		if err != nil {
			return nil, private.Errorf(", key %.80q (%d of %d in order): %w", private.Text(name), i+1, len(names), err)
		}
		if p.text != name && p.text+"*" != name {
			if other, twice := escaped[p]; twice {
				return nil, private.Errorf(", key %.80q (%d of %d in order): the same as %.80q", private.Text(name), i+1, len(names), private.Text(other))
			}
			escaped[p] = name
		}
		patterns[i] = p
		c := changeOf(of[name])
		value, is := known[c]
		if !is {
			value = uint32(len(k.changes))
			known[c] = value
			k.changes = append(k.changes, c)
		}
		values[i] = value
	}
	for i, p := range patterns {
		if other, twice := escaped[p]; twice && other != names[i] {
			return nil, private.Errorf(", key %.80q (%d of %d in order): the same as %.80q", private.Text(names[i]), i+1, len(names), private.Text(other))
		}
	}
	k.changes = slices.Clip(k.changes)
	k.table = newKeyTable(patterns, values)
	return k, nil
}

// are reports whether these are the overrides.
func (k *ruleKeys) are(of map[string]KeyOverride) bool {
	if len(of) != k.n {
		return false
	}
	for name, o := range of {
		p, err := parsePattern(name)
		if err != nil {
			return false
		}
		value, found := k.table.get(p)
		if !found || k.changes[value] != changeOf(o) {
			return false
		}
	}
	return true
}

// effectiveKeys are a rule with the overrides of its keys applied.
type effectiveKeys struct {
	table *keyTable
	each  []effectiveRule // what the table's values refer to
}

// apply applies the overrides of keys to a rule that has its own applied. The
// error names a key's override that the rule does not allow.
func (k *ruleKeys) apply(e *effectiveRule) (*effectiveKeys, error) {
	type terms struct {
		window time.Duration
		mode   Mode
	}
	rules := map[terms]*Rule{}
	keys := &effectiveKeys{table: k.table, each: make([]effectiveRule, len(k.changes))}
	for i, c := range k.changes {
		changed := effectiveRule{max: e.max, off: e.off}
		is := terms{e.rule.Window, e.rule.Mode}
		if c.window != 0 {
			is.window = c.window
		}
		if c.moded {
			is.mode = c.mode
		}
		if changed.rule = rules[is]; changed.rule == nil {
			copied := *e.rule
			copied.Window, copied.Mode, copied.overridden = is.window, is.mode, true
			copied.fitLease()
			changed.rule = &copied
			rules[is] = changed.rule
		}
		if c.max != ownMax {
			changed.max = c.max
		}
		if c.enabled != unset {
			changed.off = c.enabled == isFalse
		}
		most := e.rule.Max
		if c.max != ownMax {
			most = c.max
		}
		if err := changed.rule.check(most, 1); err != nil {
			return nil, private.Errorf("override of key %.80q: %w", private.Text(k.table.pattern(uint32(i))), err)
		}
		keys.each[i] = changed
	}
	return keys, nil
}

// of returns the rule for a key, which is e if the key has no override.
func (k *effectiveKeys) of(e *effectiveRule, key *Key) *effectiveRule {
	if value, found := k.table.find(key.bytes()); found {
		return &k.each[value]
	}
	return e
}
