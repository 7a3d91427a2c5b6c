package override

import (
	"encoding/json"
	"time"
)

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

// put writes the change into an object, in place of the one there. An end that all
// fields have is written once, unless patterns stand in the object, which it would end
// too.
func (c Change) put(m members) {
	delete(m, "until")
	for _, name := range fieldNames {
		delete(m, name)
		delete(m, name+untilPart)
		delete(m, name+thenPart)
	}
	said, then := values(c.Values), values(c.Then)
	once := !m.hasList() && len(c.Ends) == 0
	for name, value := range said {
		m[name] = value
		end := c.End(name)
		if end.IsZero() {
			continue
		}
		if once {
			m["until"] = timeText(end)
		} else {
			m[name+untilPart] = timeText(end)
		}
		if then[name] != nil {
			m[name+thenPart] = then[name]
		}
	}
}

func timeText(t time.Time) json.RawMessage {
	return json.RawMessage(encoded(t.UTC().Format(time.RFC3339Nano)))
}

// separateExpiry gives the patterns in a rule's object ends of their own, in place of the one that
// they share with the rule. Those whose end has come are gone.
func (m members) separateExpiry(now time.Time) {
	end := m.until()
	if end.IsZero() || !m.hasList() {
		return
	}
	own, _, _ := changeOfText(m, ruleFields)
	for _, list := range lists {
		patterns := m.list(list)
		for pattern := range patterns {
			one := membersOf(patterns[pattern])
			c, _, err := changeOfText(one, targetIn("", list, "").known())
			if err != nil {
				continue // the hash is wrong, and is not written
			}
			c.within(end).put(one)
			if c.Empty() {
				one["until"] = timeText(end)
			}
			patterns[pattern] = json.RawMessage(encoded(one))
		}
		m[list] = json.RawMessage(encoded(patterns))
		if expired(end, now) || len(patterns) == 0 {
			delete(m, list)
		}
	}
	own.left(now).put(m)
}

// changeOfText returns what an object says.
func changeOfText(m members, known string) (Change, time.Time, error) {
	n, err := parseJSON([]byte(encoded(m)))
	if err != nil {
		return Change{}, time.Time{}, err
	}
	return changeOf(n, known, func(*node) error { return nil })
}
