package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime/internal/keytext"
	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/rule"
)

// maxKeys is how many keys, or shares, of a rule may have overrides.
const maxKeys = 1_000_000

// A pattern is of keys, or of shares: errors say which.
const (
	key   = "key"
	share = "share"
)

// Unset is a number that a [Change] leaves as it is.
const Unset = -1

// A Change is what holds for a key in place of what holds for its rule.
type Change struct {
	Max     int64         // or Unset
	Burst   int64         // or 0
	Window  time.Duration // or 0
	Mode    int8          // or Unset
	Enabled int8          // 1 and 0 are on and off, or Unset
	Weight  uint32        // of a share, or 0
}

// NoChange is the change that leaves all as it is.
var NoChange = Change{Max: Unset, Mode: Unset, Enabled: Unset}

// newChange returns what an override changes. The error says why no rule could have it.
func newChange(o rule.KeyOverride) (Change, error) {
	c := NoChange
	if o.Max != nil {
		if c.Max = *o.Max; c.Max < 0 || c.Max > rule.MaxAmount {
			return c, fmt.Errorf("max %d is not between 0 and %d", c.Max, int64(rule.MaxAmount))
		}
	}
	if o.Burst != nil {
		if c.Burst = *o.Burst; c.Burst < 1 || c.Burst > rule.MaxCount {
			return c, fmt.Errorf("burst %d is not between 1 and %d: to admit nobody set max to 0", c.Burst, int64(rule.MaxCount))
		}
	}
	if o.Weight != nil {
		if *o.Weight < 1 || *o.Weight > rule.MaxWeight {
			return c, fmt.Errorf("weight %d is not between 1 and %d: to refuse a share give its calls a limit of their own", *o.Weight, rule.MaxWeight)
		}
		c.Weight = uint32(*o.Weight)
	}
	if o.Window != nil {
		if c.Window = *o.Window; c.Window < rule.MinWindow || c.Window > rule.MaxWindow {
			return c, fmt.Errorf("window %v is not between %v and 366 days", c.Window, rule.MinWindow)
		}
	}
	if o.Mode != nil {
		c.Mode = int8(*o.Mode)
		if *o.Mode > rule.ModeSoft {
			return c, fmt.Errorf("unknown mode %d", *o.Mode)
		}
	}
	if o.Enabled != nil {
		c.Enabled = 0
		if *o.Enabled {
			c.Enabled = 1
		}
	}
	return c, nil
}

// KeyOverrides are the changes for the keys of one rule, or for its shares. They do not change, and hold as much
// memory as the patterns do and little more: patterns that change the same share it.
type KeyOverrides struct {
	table   keytext.Table
	changes []Change // what the table's values refer to
	count   int      // patterns
}

// newKeyOverrides returns the changes of some patterns of keys or shares, and before if they are the same. The
// error names the first, in order, that makes no sense, and begins behind the name of the rule.
func newKeyOverrides(what string, before *KeyOverrides, patterns map[string]rule.KeyOverride) (*KeyOverrides, error) {
	if len(patterns) > maxKeys {
		return nil, fmt.Errorf(": %d %ss, the most is %d", len(patterns), what, maxKeys)
	}
	if before != nil && equalPatterns(before, patterns) {
		return before, nil
	}
	names := slices.Sorted(maps.Keys(patterns))
	k := &KeyOverrides{count: len(names)}
	known := make(map[Change]uint32)
	for i, name := range names {
		o := patterns[name]
		err := k.add(name, o, known)
		if err == nil && what == share && o != (rule.KeyOverride{Weight: o.Weight}) {
			err = errors.New("a share has a weight alone: give the rule or its keys what is beside it")
		} else if err == nil && what == key && o.Weight != nil {
			err = errors.New("a weight is of a share, and this is a key: name it under shares")
		}
		if err == errDuplicate {
			return nil, private.Errorf(", %s %.80q (%d of %d in order): the same as %.80q", what, private.Text(name), i+1,
				len(names), private.Text(samePattern(names, name)))
		} else if err != nil {
			return nil, private.Errorf(", %s %.80q (%d of %d in order): %w", what, private.Text(name), i+1, len(names), err)
		}
	}
	k.changes = slices.Clip(k.changes)
	return k, nil
}

// equalPatterns reports whether patterns and their changes are those of k.
func equalPatterns(k *KeyOverrides, patterns map[string]rule.KeyOverride) bool {
	if len(patterns) != k.count {
		return false
	}
	for name, o := range patterns {
		p, wrong := keytext.ParsePattern(name)
		c, err := newChange(o)
		if wrong != nil || err != nil {
			return false
		}
		if value, found := k.table.Get(p); !found || k.changes[value] != c {
			return false
		}
	}
	return true
}

var errDuplicate = private.New("a pattern is given twice")

func (k *KeyOverrides) add(name string, o rule.KeyOverride, known map[Change]uint32) error {
	p, err := keytext.ParsePattern(name)
	if err != nil {
		return err
	}
	c, err := newChange(o)
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
		return errDuplicate
	}
	return nil
}

// samePattern returns the first of names that is the pattern of name.
func samePattern(names []string, name string) string {
	p, _ := keytext.ParsePattern(name)
	return names[slices.IndexFunc(names, func(other string) bool {
		o, err := keytext.ParsePattern(other)
		return err == nil && o == p
	})]
}

func (k *KeyOverrides) Len() int { return k.count }

// Changes returns the different changes. They must not be changed.
func (k *KeyOverrides) Changes() []Change { return k.changes }

// Find returns which of the changes holds for a key, and false if none does.
func (k *KeyOverrides) Find(key []byte) (change uint32, found bool) { return k.table.Find(key) }

// Pattern returns the least of the patterns that have a change.
func (k *KeyOverrides) Pattern(change uint32) string { return k.table.Least(change) }
