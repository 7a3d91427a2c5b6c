package override

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/rategen/rategen/runtime/internal/private"
)

// Undo takes a change back, and notes that in the history. Of the edit it needs only
// Who, Why and Try. If id is 0 it takes the last change back that is no undo and is
// not undone. What [Editor.Note] has noted cannot be taken back. The error is [ErrChanged]
// if what the change has written is not there any more, and [ErrNoRecord] if there is no such
// change. An undo has a number of its own, and can be undone by that.
func (e *Editor) Undo(ctx context.Context, id int64, by Edit) (undone Record, err error) {
	records, err := e.History(ctx, 0)
	if err != nil {
		return Record{}, err
	}
	found := find(records, id)
	if found == nil && id == 0 {
		return Record{}, private.Errorf("undo: %w that could be undone", ErrNoRecord)
	}
	if found == nil {
		return Record{}, private.Errorf("undo %d: %w", id, ErrNoRecord)
	}
	if found.Did != "" {
		return Record{}, private.Errorf("undo %d: it was %q, which cannot be undone: the counts of before are not kept; name another change by its number", found.ID, found.Did)
	}
	if len(found.changes) == 0 {
		return Record{}, private.Errorf("undo %d: its fields were too long for the history", found.ID)
	}
	record := Record{Who: by.Who, Why: by.Why, Target: found.Target, Undoes: found.ID}
	err = e.change(ctx, &record, by.Try, func(fields map[string]string, _ time.Time) error {
		for field, values := range found.changes {
			is, there := fields[field]
			if there != (values[1] != nil) || there && is != *values[1] {
				return private.Errorf("undo %d: %w%s", found.ID, ErrChanged, since(records, found, field))
			}
			delete(fields, field)
			if values[0] != nil {
				fields[field] = *values[0]
			}
		}
		return e.check(fields)
	})
	return *found, err
}

// find returns the change with a number, or the last that can be undone.
func find(records []Record, id int64) *Record {
	undone := make(map[int64]bool)
	for i := range records {
		r := &records[i]
		if r.ID != 0 && (r.ID == id || id == 0 && r.Undoes == 0 && !undone[r.ID]) { // 0: no editor has written it
			return r
		}
		undone[r.Undoes] = true
	}
	return nil
}

// since names who has changed a field after a change, if the history knows.
func since(records []Record, change *Record, field string) string {
	for i := range records {
		if r := &records[i]; r.ID > change.ID {
			if _, is := r.changes[field]; is {
				return fmt.Sprintf(": by %s in %d, which is to be undone first", cmp.Or(r.Who, "somebody"), r.ID)
			}
		}
	}
	return ", by another program"
}
