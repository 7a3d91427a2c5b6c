package override

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// Values are the fields of an override. Block and Allow are fields beside the others:
// they cover them while they are in force, and leave them as they are.
type Values struct {
	rule.KeyOverride
	// Block refuses all calls with these keys, whatever else is said of them and of
	// their rule. A rule has no such field.
	Block bool
	// Allow removes the limit of these keys, unless Block is in force. A rule
	// has no such field.
	Allow bool
}

// A Change is what an override says, and until when.
type Change struct {
	Values
	// Until is when every field ends that is not in Ends; zero: never.
	Until time.Time
	// Ends has the ends of fields by their names in the hash, such as max, if not
	// all fields have the same.
	Ends map[string]time.Time
	// Then is what holds of a field from its end on. A field that is nil or false is no
	// longer overridden then.
	Then Values
}

// What is added to the name of a field.
const (
	untilPart = "_until"
	thenPart  = "_then"
)

func (c Change) names() (names []string) {
	for _, name := range fieldNames {
		if settings[name].has(c.Values) {
			names = append(names, name)
		}
	}
	return names
}

// Empty reports whether the change says nothing.
func (c Change) Empty() bool { return c.Values == Values{} }

// End returns when a field ends; zero: never.
func (c Change) End(field string) time.Time {
	if end, is := c.Ends[field]; is {
		return end
	}
	return c.Until
}

// At returns what is in force of a change at a time, as a limiter has it.
func (c Change) At(now time.Time) rule.KeyOverride {
	v := c.left(now).Values
	if v.Block {
		v.Enabled, v.Max, v.Mode = new(true), new(int64(0)), new(runtime.ModeEnforce)
	} else if v.Allow {
		v.Enabled = new(false)
	}
	return v.KeyOverride
}

// expired reports whether an end has come, if there is one.
func expired(end, now time.Time) bool { return !end.IsZero() && !now.Before(end) }

// next returns the first end after a time; zero: there is none.
func (c Change) next(now time.Time) (first time.Time) {
	for _, end := range append(slices.Collect(maps.Values(c.Ends)), c.Until) {
		if end.After(now) && (first.IsZero() || end.Before(first)) {
			first = end
		}
	}
	return first
}

// within returns the change with no end later than one; zero: as it is.
func (c Change) within(end time.Time) Change {
	if end.IsZero() {
		return c
	}
	ends := c.ends()
	for name, own := range ends {
		if own.IsZero() || end.Before(own) {
			ends[name] = end
		}
	}
	c.Until = end
	return c.ending(ends)
}

func (c Change) ends() map[string]time.Time {
	ends := make(map[string]time.Time)
	for _, name := range c.names() {
		ends[name] = c.End(name)
	}
	return ends
}

// ending returns the change with the ends of its fields: in Until if they are all
// the same, and otherwise in Ends.
func (c Change) ending(ends map[string]time.Time) Change {
	names := c.names()
	if len(names) == 0 {
		return c
	}
	c.Until, c.Ends = ends[names[0]], nil
	for _, name := range names {
		if !ends[name].Equal(c.Until) {
			maps.DeleteFunc(ends, func(_ string, end time.Time) bool { return end.IsZero() })
			c.Until, c.Ends = time.Time{}, ends
			break
		}
	}
	return c
}

// String returns the change as it is written in the hash. An end that all fields have is written once.
func (c Change) String() string {
	m, then := values(c.Values), values(c.Then)
	for _, name := range c.names() {
		end, field := c.End(name), name+untilPart
		if len(c.Ends) == 0 {
			field = "until"
		}
		if end.IsZero() {
			continue
		}
		m[field] = json.RawMessage(encoded(end.UTC().Format(time.RFC3339Nano)))
		if then[name] != nil {
			m[name+thenPart] = then[name]
		}
	}
	return encoded(m)
}

// left returns what is left at a time: what has ended gives way to what holds then.
func (c Change) left(now time.Time) Change {
	if c.Until.IsZero() && len(c.Ends) == 0 || now.IsZero() {
		return c
	}
	ends := c.ends()
	for name, s := range settings {
		if expired(ends[name], now) {
			s.take(&c.Values, c.Then)
			s.take(&c.Then, Values{})
			delete(ends, name)
		}
	}
	if c.Empty() {
		return Change{}
	}
	return c.ending(ends)
}

// with returns what an edit makes of the change. A field keeps its end unless the edit has one, and
// one that has none is what holds again when that end is over.
func (c Change) with(e Edit) Change {
	ends, set := c.ends(), Values{e.Set, e.Block, e.Allow}
	for _, name := range e.Clear {
		settings[name].take(&c.Values, Values{})
		settings[name].take(&c.Then, Values{})
		delete(ends, name)
	}
	for name, s := range settings {
		if !s.has(set) {
			continue
		}
		if e.Endless {
			s.take(&c.Then, Values{})
			delete(ends, name)
		} else if !e.Until.IsZero() {
			if ends[name].IsZero() {
				s.take(&c.Then, c.Values)
			}
			ends[name] = e.Until
		}
		s.take(&c.Values, set)
	}
	if c.Empty() {
		return Change{}
	}
	return c.ending(ends)
}
