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
	// keepRecords is for how long the history keeps a change, and maxHistory how many bytes of changes.
	keepRecords = 30 * 24 * time.Hour
	maxHistory  = 4 << 20
	// maxRecorded is the most that a record keeps of fields, in bytes.
	maxRecorded = 1 << 20
	// maxID is above the number of any change: whoever has written a higher one is no editor.
	maxID = 1 << 40
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
	kept    int // records before it
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
	Shares  bool         `json:"shares,omitempty"` // it is of shares
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
	if r.list() != "" {
		s.Pattern, s.Shares = &r.Pattern, r.Shares
	}
	return encoded(s)
}

// recordOf reads what storedOf returns.
func recordOf(text string) (r Record, err error) {
	var s stored
	if err := json.Unmarshal([]byte(text), &s); err != nil || s.ID < 1 || s.ID > maxID {
		return Record{Did: "an entry that no editor has written"}, errors.New("it holds what no editor has written")
	}
	r = Record{ID: s.ID, At: s.At, Who: s.Who, Why: s.Why, Target: Target{Rule: s.Rule}, Undoes: s.Undoes, Did: s.Did, changes: s.Fields}
	if s.Pattern != nil {
		r.Pattern, r.Keys, r.Shares = *s.Pattern, !s.Shares, s.Shares
	}
	for field, said := range s.Fields {
		if t, _ := targetOf(field); t == r.Target {
			r.Before, r.After = textOf(said[0]), textOf(said[1])
		}
	}
	if s.Did != "" {
		r.Before = s.Was
	}
	if r.Before == "" && r.After == "" && s.Did == "" {
		r.Several = len(r.changes)
	}
	return r, nil
}

func textOf(said *string) string {
	if said == nil {
		return ""
	}
	return *said
}

// Targets returns of what the change has changed the overrides.
func (r *Record) Targets() map[Target]bool {
	all := make(map[Target]bool)
	for field := range r.changes {
		if t, err := targetOf(field); err == nil {
			all[t] = true
		}
	}
	return all
}

// number gives the record the next number, and finds out how many of those before it are kept.
func (r *Record) number(ctx context.Context, tx *redis.Tx, key string, now time.Time, changes fieldChanges) error {
	texts, err := tx.LRange(ctx, key, 0, -1).Result()
	if err != nil {
		return private.Errorf("history %q: %w", key, err)
	}
	r.ID, r.At, r.changes, r.kept = 1, now.UTC(), changes, 0
	size := 0
	for i, text := range texts {
		var before stored
		if json.Unmarshal([]byte(text), &before) == nil && before.ID <= maxID {
			r.ID = max(r.ID, before.ID+1)
		}
		if size += len(text); size <= maxHistory && now.Sub(before.At) <= keepRecords {
			r.kept = i + 1
		}
	}
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

// History returns the last n changes, or all if n is 0, that editors have made or noted, the last one first; those of the last
// 30 days at most, and of these 4 MiB. What other programs write to the hash is not among them. An entry
// that no editor has written is a record without an ID.
func (e *Editor) History(ctx context.Context, n int) ([]Record, error) {
	key := historyKey(e.key)
	texts, err := e.client.LRange(ctx, key, 0, int64(n)-1).Result()
	if err != nil {
		return nil, private.Errorf("history %q: %w", key, err)
	}
	records := make([]Record, len(texts))
	for i, text := range texts {
		records[i], _ = recordOf(text)
	}
	return records, nil
}

// Note adds to the history what is done beside the overrides, such as the reset of a count,
// and returns its number. Of the record it takes Who, Why, Target, Did and Before. It reads
// no overrides: a broken hash keeps nobody from a reset. Note first, and act then: what
// cannot be noted is not done unseen.
func (e *Editor) Note(ctx context.Context, r Record) (id int64, err error) {
	if r.Did == "" || len(r.Did)+len(r.Before) > maxRecorded {
		return 0, errors.New("override: a note says in Did what is done, in 16 KiB at most")
	}
	r = Record{Who: r.Who, Why: r.Why, Target: r.Target, Did: r.Did, Before: r.Before}
	err = e.watched(ctx, func(tx *redis.Tx) error {
		now, err := tx.Time(ctx).Result()
		if err == nil {
			err = r.number(ctx, tx, historyKey(e.key), now, nil)
		}
		if err != nil {
			return e.wrap(private.Hide(err))
		}
		return e.write(ctx, tx, &r, nil)
	})
	return r.ID, err
}
