package override

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime/internal/private"
)

const (
	// maxRecords is how many changes the history keeps.
	maxRecords = 500
	// maxRecorded is the most that a record keeps of fields, in bytes.
	maxRecorded = 64 << 10
)

// ErrChanged is the error of an undo of what somebody has changed again since.
var ErrChanged = errors.New("it has been changed again since")

// ErrNoRecord is the error of an undo of what the history does not have.
var ErrNoRecord = errors.New("the history has no such change")

// A Record is one change in the history of a hash.
type Record struct {
	ID  int64     // 1 for the first change, and so on
	At  time.Time // by the clock of Redis
	Who string    // empty: it was not said
	Why string
	// Target is what was changed.
	Target
	// Before and After are what the target's field of the hash said, in JSON. They are
	// empty if there was no such field, and if the fields are too long to be kept.
	Before, After string
	// Did is in words what was done beside the overrides, such as reset: see [Editor.Note].
	// Before is then what was there, in words too, and there is no After. Empty: it is a
	// change of overrides.
	Did string
	// Several is how many fields of the hash it has changed, if these are of several targets: then
	// Before and After are empty. 0: it is of one.
	Several int
	// Undoes is the number of the change that this one took back, or 0.
	Undoes int64

	changes fieldChanges
}

// fieldChanges are the fields of a hash that differ, before and after; nil: there is
// no such field.
type fieldChanges map[string][2]*string

func changesOf(before, after map[string]string) fieldChanges {
	changes := make(fieldChanges)
	for field, was := range before {
		if is, there := after[field]; !there {
			changes[field] = [2]*string{&was, nil}
		} else if is != was {
			changes[field] = [2]*string{&was, &is}
		}
	}
	for field, is := range after {
		if _, there := before[field]; !there {
			changes[field] = [2]*string{nil, &is}
		}
	}
	return changes
}

// size is how much a record keeps of the changes, in bytes.
func (c fieldChanges) size() (size int) {
	for field, values := range c {
		size += len(field)
		for _, v := range values {
			if v != nil {
				size += len(*v)
			}
		}
	}
	return size
}

// A stored record is one as it stands in the list.
type stored struct {
	ID      int64        `json:"id"`
	At      time.Time    `json:"at"`
	Who     string       `json:"who,omitempty"`
	Why     string       `json:"why,omitempty"`
	Rule    string       `json:"rule"`
	Pattern *string      `json:"pattern,omitempty"`
	Undoes  int64        `json:"undoes,omitempty"`
	Did     string       `json:"did,omitempty"`
	Was     string       `json:"was,omitempty"`    // before that
	Fields  fieldChanges `json:"fields,omitempty"` // before and after
}

// storedOf returns a record as the history keeps it.
func storedOf(r *Record) string {
	s := stored{ID: r.ID, At: r.At, Who: r.Who, Why: r.Why, Rule: r.Rule, Undoes: r.Undoes, Did: r.Did, Fields: r.changes}
	if r.Did != "" {
		s.Was = r.Before
	}
	if r.Keys {
		s.Pattern = &r.Pattern
	}
	return encoded(s)
}

// recordOf reads what storedOf returns.
func recordOf(text string) (r Record, err error) {
	var s stored
	if err := json.Unmarshal([]byte(text), &s); err != nil || s.ID < 1 {
		return r, errors.New("it holds what no editor has written: delete that key")
	}
	r = Record{ID: s.ID, At: s.At, Who: s.Who, Why: s.Why, Target: Target{Rule: s.Rule}, Undoes: s.Undoes, Did: s.Did, changes: s.Fields}
	if s.Pattern != nil {
		r.Pattern, r.Keys = *s.Pattern, true
	}
	r.Before, r.After = r.text(0), r.text(1)
	if s.Did != "" {
		r.Before = s.Was
	}
	if r.Before == "" && r.After == "" && s.Did == "" {
		r.Several = len(r.changes)
	}
	return r, nil
}

// text returns what the fields said of the target before or after.
func (r *Record) text(side int) string {
	fields := make(map[string]string)
	for field, values := range r.changes {
		if values[side] != nil {
			fields[field] = *values[side]
		}
	}
	p := placeOf(fields, r.Target)
	whole := membersOf([]byte(fields[p.field]))
	if p.nested {
		return string(whole.keys()[r.Pattern])
	}
	delete(whole, "keys")
	if len(whole) > 0 {
		return encoded(whole)
	}
	return ""
}

// number gives the record the next number.
func (r *Record) number(ctx context.Context, tx *redis.Tx, key string, now time.Time, changes fieldChanges) error {
	last, err := tx.LIndex(ctx, key, 0).Result()
	var before Record
	switch {
	case errors.Is(err, redis.Nil):
		err = nil
	case err == nil:
		before, err = recordOf(last)
	}
	if err != nil {
		return private.Errorf("history %q: %w", key, err)
	}
	r.ID, r.At, r.changes = before.ID+1, now.UTC(), changes
	if r.changes.size() > maxRecorded {
		r.changes = nil
	}
	return nil
}

// historyKey returns the key of the history of a hash. Both are in one slot of a
// cluster.
func historyKey(key string) string {
	if _, tagged, open := strings.Cut(key, "{"); open {
		if tag, _, closed := strings.Cut(tagged, "}"); closed && tag != "" {
			return key + ":history"
		}
	}
	return "{" + key + "}:history"
}

// History returns the last n changes that editors have made or noted, the last one first.
// At most 500 are kept. What other programs write to the hash is not among them.
func (e *Editor) History(ctx context.Context, n int) ([]Record, error) {
	key := historyKey(e.key)
	texts, err := e.client.LRange(ctx, key, 0, int64(n)-1).Result()
	if err != nil {
		return nil, private.Errorf("history %q: %w", key, err)
	}
	records := make([]Record, len(texts))
	for i, text := range texts {
		if records[i], err = recordOf(text); err != nil {
			return nil, private.Errorf("history %q: %w", key, err)
		}
	}
	return records, nil
}
