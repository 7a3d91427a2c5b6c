package override

import "time"

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
