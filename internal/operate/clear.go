package operate

import (
	"context"
	"fmt"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
)

// The ways of [Core.Clear]: Reset forgets everything about a key. Release ends its hold or block, and keeps its counts.
const (
	Reset   = "reset"
	Release = "release"
)

// Clear resets or releases a key, of which the state was known before, after the history has that: what cannot be
// noted is not done. But a full Redis takes no note, and a reset may free memory: then it is noted afterwards, if
// it can be.
func (c *Core) Clear(ctx context.Context, did string, r Rule, key *runtime.Key, before State, by override.Record) error {
	by.Target, by.Did = override.Target{Rule: r.Name, Pattern: key.Pattern(), Keys: true}, did
	by.Before = fmt.Sprintf("%s, %d used", before.State, before.Used)
	unnoted := c.Note(ctx, by)
	full := Replied(InFull(unnoted), "OOM")
	if unnoted != nil && !full {
		return unnoted
	}
	clear := c.Limiter.Reset
	if did == Release {
		clear = c.Limiter.Release
	}
	if err := clear(ctx, c.LimitOf(r, key)); err != nil {
		return err
	}
	if full && c.Note(ctx, by) != nil {
		c.warnf("it is in no history, since Redis is full")
	}
	return nil
}

// Note adds to the history what is about to be done to counts.
func (c *Core) Note(ctx context.Context, r override.Record) error {
	if c.Hash != "" || c.Changes != nil {
		editor, err := c.changes()
		if err == nil {
			_, err = editor.Note(ctx, r)
		}
		return err
	}
	if r.Why != "" {
		return Wrongf("-m is for the history, which is kept beside the overrides: name the hash with -overrides")
	}
	c.warnf("this is in no history: that is kept beside the overrides, see -overrides")
	return nil
}
