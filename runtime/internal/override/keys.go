// Package override keeps up with overrides that change while a program runs, and applies
// them to rules.
//
// It is handed a source, and functions that change and check a rule. It promises that the
// source is asked at every interval by one goroutine at a time, that a source which hangs or
// panics is reported and stops nothing, that one and the same error is reported once a
// minute, that overrides are applied to each rule once, and that a rule's many keys take
// little more memory than their patterns. It never looks into a rule, and never puts anything
// in force after Close.
package override

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime/internal/keytext"
	"github.com/rategen/rategen/runtime/internal/private"
)

// MaxKeys is how many keys of a rule may have overrides.
const MaxKeys = 1_000_000

// Unset is a number that a [Change] leaves as it is.
const Unset = -1

// A Change is what holds for a key in place of what holds for its rule.
type Change struct {
	Max     int64         // or Unset
	Window  time.Duration // or 0
	Mode    int8          // or Unset
	Enabled int8          // 1 and 0 are on and off, or Unset
}

// Nothing is the change that leaves all as it is.
var Nothing = Change{Max: Unset, Mode: Unset, Enabled: Unset}

// NewChange returns the change to what is not nil. The error says why no rule could have it.
func NewChange(enabled *bool, max *int64, window *time.Duration, mode *uint8, lastMode uint8) (Change, error) {
	c := Nothing
	if max != nil {
		if c.Max = *max; c.Max < 0 || c.Max > spec.MaxAmount {
			return c, fmt.Errorf("max %d is not between 0 and %d", c.Max, int64(spec.MaxAmount))
		}
	}
	if window != nil {
		if c.Window = *window; c.Window < spec.MinWindow || c.Window > spec.MaxWindow {
			return c, fmt.Errorf("window %v is not between %v and 366 days", c.Window, spec.MinWindow)
		}
	}
	if mode != nil {
		if c.Mode = int8(*mode); *mode > lastMode {
			return c, fmt.Errorf("unknown mode %d", *mode)
		}
	}
	if enabled != nil {
		if c.Enabled = 0; *enabled {
			c.Enabled = 1
		}
	}
	return c, nil
}

// Keys are the changes for the keys of one rule. They do not change, and hold as much
// memory as the patterns do and little more: patterns that change the same share it.
type Keys struct {
	table   keytext.Table
	changes []Change // what the table's values refer to
	n       int      // patterns
}

// NewKeys returns the changes of some patterns, and before if they are the same. The error names
// the first, in order, that makes no sense, and begins behind the name of the rule.
func NewKeys[O any](before *Keys, patterns map[string]O, change func(O) (Change, error)) (*Keys, error) {
	if len(patterns) > MaxKeys {
		return nil, fmt.Errorf(": %d keys, the most is %d", len(patterns), MaxKeys)
	}
	if before != nil && equal(before, patterns, change) {
		return before, nil
	}
	names := slices.Sorted(maps.Keys(patterns))
	k := &Keys{n: len(names)}
	known := make(map[Change]uint32)
	for i, name := range names {
		err := k.add(name, func() (Change, error) { return change(patterns[name]) }, known)
		if err == errTwice {
			return nil, private.Errorf(", key %.80q (%d of %d in order): the same as %.80q", private.Text(name), i+1, len(names), private.Text(same(names, name)))
		} else if err != nil {
			return nil, private.Errorf(", key %.80q (%d of %d in order): %w", private.Text(name), i+1, len(names), err)
		}
	}
	k.changes = slices.Clip(k.changes)
	return k, nil
}

// equal reports whether patterns and their changes are those of k.
func equal[O any](k *Keys, patterns map[string]O, change func(O) (Change, error)) bool {
	if len(patterns) != k.n {
		return false
	}
	for name, o := range patterns {
		p, wrong := keytext.ParsePattern(name)
		c, err := change(o)
		if wrong != nil || err != nil {
			return false
		}
		if value, found := k.table.Get(p); !found || k.changes[value] != c {
			return false
		}
	}
	return true
}

var errTwice = private.New("a pattern is given twice")

func (k *Keys) add(name string, change func() (Change, error), known map[Change]uint32) error {
	p, err := keytext.ParsePattern(name)
	if err != nil {
		return err
	}
	c, err := change()
	if err != nil {
		return err
	}
	value, is := known[c]
	if !is {
		value = uint32(len(k.changes))
		known[c] = value
		k.changes = append(k.changes, c)
	}
	if !k.table.Add(p, value) {
		return errTwice
	}
	return nil
}

// same returns the first of names that is the pattern of name.
func same(names []string, name string) string {
	p, _ := keytext.ParsePattern(name)
	return names[slices.IndexFunc(names, func(other string) bool {
		o, err := keytext.ParsePattern(other)
		return err == nil && o == p
	})]
}

// Len returns how many patterns there are.
func (k *Keys) Len() int { return k.n }

// Changes returns the different changes. They must not be changed.
func (k *Keys) Changes() []Change { return k.changes }

// Find returns which of the changes holds for a key, and false if none does.
func (k *Keys) Find(key []byte) (change uint32, found bool) { return k.table.Find(key) }

// Pattern returns the least of the patterns that have a change.
func (k *Keys) Pattern(change uint32) string { return k.table.Least(change) }
