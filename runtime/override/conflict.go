package override

import (
	"time"

	"github.com/rategen/rategen/runtime/internal/private"
)

// conflict returns an [ErrConflict] if setting next would end a part of the
// override, or change its end.
func (c Change) conflict(next Change) error {
	switch {
	case c.empty() || c.Until.Equal(next.Until):
		return nil
	case c.Until.IsZero():
		return private.Errorf("%w: there is one without an end, %s, which would end too: give the change no end, or remove that override first", ErrConflict, c)
	case next.covers(c):
		return nil
	}
	return private.Errorf("%w: there is one until %s, %s: give the change this end, or remove that override first",
		ErrConflict, c.Until.UTC().Format(time.RFC3339), c)
}

// covers reports whether next has every field that c has.
func (next Change) covers(c Change) bool {
	return (c.Enabled == nil || next.Enabled != nil) && (c.Max == nil || next.Max != nil) &&
		(c.Window == nil || next.Window != nil) && (c.Mode == nil || next.Mode != nil)
}

// String returns the change as it is written in the hash.
func (c Change) String() string {
	m := make(members)
	c.put(m)
	return encoded(m)
}
