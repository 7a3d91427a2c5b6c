package override

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/rategen/rategen/runtime/internal/private"
)

// A place is where the override of a target stands in the hash: in a field of its
// own, or under keys or shares in the field of its rule.
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
		if target.list() != "" {
			continue
		}
		for _, list := range lists {
			for pattern := range membersOf([]byte(value)).list(list) {
				places = append(places, place{targetIn(target.Rule, list, pattern), field, true})
			}
		}
	}
	return places
}

// An index has the fields of a hash by what they are for. A broken hash may have several for one target.
type index map[Target][]string

func indexOf(fields map[string]string) index {
	x := make(index, len(fields))
	for field := range fields {
		if t, err := targetOf(field); err == nil {
			x[t] = append(x[t], field)
		}
	}
	return x
}

// places returns where overrides of a target stand in the fields.
func (i index) places(fields map[string]string, t Target) (found []place) {
	for _, field := range i[t] {
		if _, is := fields[field]; is {
			found = append(found, place{t, field, false})
		}
	}
	if t.list() == "" {
		return found
	}
	for _, field := range i[Target{Rule: t.Rule}] {
		if membersOf([]byte(fields[field])).list(t.list())[t.Pattern] != nil {
			found = append(found, place{t, field, true})
		}
	}
	return found
}

// place returns where the override of a target stands, or is to stand.
func (i index) place(fields map[string]string, t Target) place {
	if found := i.places(fields, t); len(found) > 0 {
		return found[0]
	}
	p := place{target: t, field: fieldOf(t)}
	i[t] = append(i[t], p.field)
	return p
}

// known returns which fields an override of the target has.
func (t Target) known() string {
	if t.Keys {
		return keyFields
	}
	if t.Shares {
		return shareFields
	}
	if t.Rule == All {
		return allFields
	}
	return ruleFields
}

// change returns what stands there, which may be nothing.
func (p place) change(fields map[string]string) (Change, error) {
	value, is := fields[p.field]
	if !is {
		return Change{}, nil
	}
	text, end := []byte(value), time.Time{}
	if p.nested {
		whole := membersOf(text)
		text, end = whole.list(p.target.list())[p.target.Pattern], whole.until()
	}
	n, err := parseJSON(text)
	if err == nil {
		var c Change
		if c, _, err = changeOf(n, p.target.known(), func(*node) error { return nil }); err == nil {
			return c.within(end), nil
		}
	}
	return Change{}, private.Errorf("field %.80q: %w", named(p.field), err)
}

// edit makes a change at the place at a time. It returns what held there before and
// holds there now.
func (p place) edit(fields map[string]string, e Edit, now time.Time) (before, after Change, err error) {
	c, err := p.change(fields)
	if err != nil {
		return before, after, private.Errorf("%w: remove this override first", err)
	}
	whole := membersOf([]byte(fields[p.field]))
	if whole == nil {
		whole = make(members)
	}
	whole.separateExpiry(now)
	before = c.left(now)
	if after = before.with(e); after.Empty() {
		fields[p.field] = encoded(whole)
		p.remove(fields)
		return before, after, nil
	}
	into := whole
	if p.nested {
		into = make(members)
	}
	after.put(into)
	list := p.target.list()
	if p.nested && whole[list] != nil {
		patterns := whole.list(list)
		patterns[p.target.Pattern] = json.RawMessage(encoded(into))
		whole[list] = json.RawMessage(encoded(patterns))
	} else if p.nested { // they have ended with their rule
		fields[fieldOf(p.target)] = encoded(into)
	}
	fields[p.field] = encoded(whole)
	if len(whole) == 0 {
		delete(fields, p.field)
	}
	return before, after, nil
}

// remove takes away what stands there, and reports whether something did. What
// stands under keys and shares stays, unless it has ended with the rest.
func (p place) remove(fields map[string]string) bool {
	value, is := fields[p.field]
	if !is {
		return false
	}
	whole := membersOf([]byte(value))
	end := whole.until()
	list := p.target.list()
	if p.nested {
		patterns := whole.list(list)
		delete(patterns, p.target.Pattern)
		whole[list] = json.RawMessage(encoded(patterns))
		if len(patterns) == 0 {
			delete(whole, list)
		}
	} else if whole.hasList() && !expired(end, time.Now()) {
		size := len(whole)
		for _, name := range fieldNames {
			delete(whole, name)
			delete(whole, name+untilPart)
			delete(whole, name+thenPart)
		}
		if len(whole) == size {
			return false
		}
	} else {
		clear(whole)
	}
	if len(whole) == 0 {
		delete(fields, p.field)
	} else {
		fields[p.field] = encoded(whole)
	}
	return true
}

// Members are an object in JSON by its fields. What is not changed is written
// back as it was.
type members map[string]json.RawMessage

// fieldOf returns the field of the hash for a target: what [targetOf] reads.
func fieldOf(t Target) string {
	if t.Keys {
		return encoded([]string{t.Rule, t.Pattern})
	}
	if t.Shares {
		return encoded([]string{t.Rule, "share", t.Pattern})
	}
	if strings.HasPrefix(t.Rule, "[") {
		return encoded([]string{t.Rule})
	}
	return t.Rule
}

// encoded returns a value in JSON, which has no error for those here.
func encoded(v any) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // names of rules are easier to read so
	_ = encoder.Encode(v)
	return strings.TrimSuffix(text.String(), "\n")
}

// membersOf returns the fields of an object, or nil if the text is none.
func membersOf(text []byte) (m members) {
	if json.Unmarshal(text, &m) != nil {
		return nil
	}
	return m
}

// list returns what stands under a field of patterns.
func (m members) list(name string) members { return membersOf(m[name]) }

// hasList reports whether the object has fields of patterns.
func (m members) hasList() bool {
	return slices.ContainsFunc(lists, func(name string) bool { return len(m.list(name)) > 0 })
}

// until returns when the object ends.
func (m members) until() (t time.Time) {
	_ = json.Unmarshal(m["until"], &t) // if it is invalid, so is the hash
	return t
}
