package override

import (
	"encoding/json"
	"time"

	"github.com/rategen/rategen/runtime/internal/private"
)

// A place is where the override of a target stands in the hash: in a field of its
// own, or under keys in the field of its rule.
type place struct {
	target Target
	field  string
	nested bool
}

// placesIn returns the places of all overrides. Fields that name no target are
// left out.
func placesIn(fields map[string]string) (places []place) {
	for field, value := range fields {
		target, err := targetOf(field)
		if err != nil {
			continue
		}
		places = append(places, place{target, field, false})
		if target.Keys {
			continue
		}
		for pattern := range membersOf([]byte(value)).keys() {
			places = append(places, place{Target{target.Rule, pattern, true}, field, true})
		}
	}
	return places
}

// placeOf returns where the override of a target stands, or is to stand.
func placeOf(fields map[string]string, t Target) place {
	for _, p := range placesIn(fields) {
		if p.target == t {
			return p
		}
	}
	return place{target: t, field: fieldOf(t)}
}

// change returns what stands there, which may be nothing.
func (p place) change(fields map[string]string) (c Change, err error) {
	value, is := fields[p.field]
	if !is {
		return c, nil
	}
	text := []byte(value)
	whole := membersOf(text)
	if p.nested {
		text = whole.keys()[p.target.Pattern]
	}
	n, err := parseJSON(text)
	if err == nil {
		switch {
		case p.target.Keys:
			c, err = keyChangeOf(n)
		case p.target.Rule == All:
			c, err = allOf(n)
		default:
			c, err = changeOf(n, "enabled, keys, max, mode, until, window", func(*node) error { return nil })
		}
	}
	if err != nil {
		return Change{}, private.Errorf("field %.80q: %w", named(p.field), err)
	}
	if p.nested {
		if end := whole.until(); c.Until.IsZero() || !end.IsZero() && end.Before(c.Until) {
			c.Until = end
		}
	}
	return c, nil
}

// put writes a change to the place.
func (p place) put(fields map[string]string, c Change) {
	whole := membersOf([]byte(fields[p.field]))
	if whole == nil {
		whole = make(members)
	}
	if !p.nested {
		c.put(whole)
	} else {
		keys := whole.keys()
		one := membersOf(keys[p.target.Pattern])
		c.put(one)
		keys[p.target.Pattern] = json.RawMessage(encoded(one))
		whole["keys"] = json.RawMessage(encoded(keys))
	}
	fields[p.field] = encoded(whole)
}

// remove takes away what stands there, and reports whether something did. What
// stands under keys stays, unless it has ended with the rest.
func (p place) remove(fields map[string]string) bool {
	value, is := fields[p.field]
	if !is {
		return false
	}
	whole := membersOf([]byte(value))
	keys := whole.keys()
	end := whole.until()
	switch {
	case p.nested:
		delete(keys, p.target.Pattern)
		whole["keys"] = json.RawMessage(encoded(keys))
		if len(keys) == 0 {
			delete(whole, "keys")
		}
	case len(keys) > 0 && (end.IsZero() || time.Now().Before(end)):
		size := len(whole)
		for _, name := range []string{"enabled", "max", "mode", "window"} {
			delete(whole, name)
		}
		if len(whole) == size {
			return false
		}
	default:
		clear(whole)
	}
	if len(whole) == 0 {
		delete(fields, p.field)
	} else {
		fields[p.field] = encoded(whole)
	}
	return true
}
