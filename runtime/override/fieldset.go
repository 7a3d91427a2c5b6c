package override

import (
	"encoding/json"
	"maps"
	"time"
)

// A fieldSet is an override by the names of its fields, for an editor.
type fieldSet map[string]fieldValue

// fieldValue is a field of an override. Its values are in JSON.
type fieldValue struct {
	value, then json.RawMessage // then may be missing
	until       time.Time       // zero: it has no end
}

// fieldSetOf returns what a change says.
func fieldSetOf(c Change) fieldSet {
	s, then := make(fieldSet), values(c.Then)
	for name, value := range values(c.Values) {
		s[name] = fieldValue{value, then[name], c.End(name)}
	}
	return s
}

// at returns what is left at a time: what has ended gives way to what holds then.
func (s fieldSet) at(now time.Time) fieldSet {
	left := maps.Clone(s)
	for name, f := range s {
		if !expired(f.until, now) {
			continue
		}
		if f.then == nil {
			delete(left, name)
		} else {
			left[name] = fieldValue{value: f.then}
		}
	}
	return left
}

// merge does what an edit says. A field keeps its end unless the edit has one, and
// one that has none is what holds again when that end is over.
func (s fieldSet) merge(e Edit) {
	for _, name := range e.Clear {
		delete(s, name)
	}
	for name, f := range fieldSetOf(Change{Values: Values{e.Set, e.Block, e.Allow}}) {
		was, is := s[name]
		if !e.Endless {
			f.until, f.then = was.until, was.then
		}
		if !e.Endless && !e.Until.IsZero() {
			f.until = e.Until
			if is && was.until.IsZero() {
				f.then = was.value
			}
		}
		s[name] = f
	}
}

// put writes the override into an object, in place of the one there. An end that all
// fields have is written once, unless keys stand in the object, which it would end
// too.
func (s fieldSet) put(m members) {
	delete(m, "until")
	for _, name := range fieldNames {
		delete(m, name)
		delete(m, name+untilPart)
		delete(m, name+thenPart)
	}
	var common time.Time
	same := m["keys"] == nil
	for _, f := range s {
		if common.IsZero() {
			common = f.until
		}
		same = same && !f.until.IsZero() && f.until.Equal(common)
	}
	if same && len(s) > 0 {
		m["until"] = timeText(common)
	}
	for name, f := range s {
		m[name] = f.value
		if f.until.IsZero() {
			continue
		}
		if !same {
			m[name+untilPart] = timeText(f.until)
		}
		if f.then != nil {
			m[name+thenPart] = f.then
		}
	}
}

func timeText(t time.Time) json.RawMessage {
	return json.RawMessage(encoded(t.UTC().Format(time.RFC3339Nano)))
}

// separateExpiry gives the keys in a rule's object ends of their own, in place of the one that
// they share with the rule. Keys whose end has come are gone.
func (m members) separateExpiry(now time.Time) {
	end, keys := m.until(), m.keys()
	if end.IsZero() || len(keys) == 0 {
		return
	}
	own, _, _ := changeOfText(m, ruleFields)
	for pattern := range keys {
		one := membersOf(keys[pattern])
		c, _, err := changeOfText(one, keyFields)
		if err != nil {
			continue // the hash is wrong, and is not written
		}
		fieldSetOf(c.within(end)).put(one)
		if c.Empty() {
			one["until"] = timeText(end)
		}
		keys[pattern] = json.RawMessage(encoded(one))
	}
	m["keys"] = json.RawMessage(encoded(keys))
	if expired(end, now) {
		delete(m, "keys")
	}
	fieldSetOf(own).at(now).put(m)
}

// changeOfText returns what an object says.
func changeOfText(m members, known string) (Change, time.Time, error) {
	n, err := parseJSON([]byte(encoded(m)))
	if err != nil {
		return Change{}, time.Time{}, err
	}
	return changeOf(n, known, func(*node) error { return nil })
}
