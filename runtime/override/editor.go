package override

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime"
)

// maxTries is how often an editor begins anew when somebody else has changed the
// hash meanwhile.
const maxTries = 20

// An Editor changes the hash that [Redis] reads, for tools of operators. Each
// change is made whole or not at all, whoever else edits the hash. What a limiter
// would reject is not written. An Editor is cheap to make.
type Editor struct {
	client redis.UniversalClient
	key    string
	rules  []*runtime.Rule
}

// NewEditor returns an editor of the hash under a key of Redis, the key as it is
// without any namespace. Overrides that one of rules does not allow are not
// written; rules may have none, or only those that are known.
func NewEditor(client redis.UniversalClient, key string, rules ...*runtime.Rule) *Editor {
	return &Editor{client, key, rules}
}

// An Entry is an override in the hash.
type Entry struct {
	Target
	Change
}

// List returns the overrides in the hash, by rules and patterns, and that for all
// limits first. An override that has ended is one of them, until it is removed. The
// error is that of a limiter which reads the hash.
func (e *Editor) List(ctx context.Context) ([]Entry, error) {
	fields, err := readHash(ctx, e.client, e.key)
	if err != nil {
		return nil, err
	}
	if err := e.check(fields); err != nil {
		return nil, e.wrap(err)
	}
	var entries []Entry
	for _, p := range placesIn(fields) {
		c, err := p.change(fields)
		if err != nil {
			return nil, e.wrap(err)
		}
		if !c.Empty() {
			entries = append(entries, Entry{p.target, c})
		}
	}
	slices.SortFunc(entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(min(a.rank(), 1), min(b.rank(), 1)), cmp.Compare(a.Rule, b.Rule),
			cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.Pattern, b.Pattern))
	})
	return entries, nil
}

// An Edit is one change of an override.
type Edit struct {
	Target
	// Set has the fields that are to be set: those that are not nil. Block and Allow
	// are set if they are true. The other fields of the override stay as they are.
	Set          runtime.KeyOverride
	Block, Allow bool
	// Clear names fields that are to be taken away, as they are called in the hash:
	// max, window, mode, enabled, block and allow.
	Clear []string
	// Remove takes the whole override away, also one that is broken. That of a rule
	// leaves those of its keys. A field of the hash that names no target is removed by
	// its own name as the Rule.
	Remove bool
	// Until is when the fields of Set, Block and Allow end. What held of them without
	// an end before holds again then. If it is zero, fields that have an end keep it.
	Until time.Time
	// Endless takes the ends of these fields away.
	Endless bool
	// Who and Why are written to the history: who makes the change, and what for.
	Who, Why string
	// Try changes nothing: it only finds out what the edit would do.
	Try bool
}

// An Edited is what an edit has done.
type Edited struct {
	Before, After Change // empty: there was or is none
	// Found is whether there was what was to be taken away.
	Found bool
	// ID is the number of the change in the history. It is 0 if nothing has changed.
	ID int64
}

// Edit changes the override of a target, and notes that in the history. An override,
// or a field of one, that has ended is none.
func (e *Editor) Edit(ctx context.Context, edit Edit) (done Edited, err error) {
	if err := edit.check(); err != nil {
		return done, fmt.Errorf("override: %w", err)
	}
	t := edit.Target
	record := Record{Who: edit.Who, Why: edit.Why, Target: t}
	err = e.change(ctx, &record, edit.Try, func(fields map[string]string, now time.Time) (err error) {
		done = Edited{}
		if edit.Remove {
			done.Before, _ = placeOf(fields, t).change(fields)
			done.Found = remove(fields, t)
			return nil
		}
		if done.Before, done.After, err = placeOf(fields, t).edit(fields, edit, now); err != nil {
			return err
		}
		has := done.Before.names()
		done.Found = slices.ContainsFunc(edit.Clear, func(name string) bool { return slices.Contains(has, name) })
		return e.check(fields)
	})
	if err != nil {
		return Edited{}, err
	}
	done.ID = record.ID
	return done, nil
}

// check returns an error if no override can be like that.
func (e *Edit) check() error {
	sets := e.Set != (runtime.KeyOverride{}) || e.Block || e.Allow
	t := e.Target
	switch {
	case e.Remove && (sets || len(e.Clear) > 0) || !e.Remove && !sets && len(e.Clear) == 0:
		return errors.New("the edit has no field, or removes all and sets some: say one of them")
	case e.Remove:
		return nil
	case t.Rule == "":
		return errors.New("no rule is named")
	case t.Rule == All && (t.Keys || e.Block || e.Allow || e.Set != runtime.KeyOverride{Enabled: e.Set.Enabled}):
		return errors.New("* is for all limits, and says enabled only: name a rule")
	case !t.Keys && (e.Block || e.Allow):
		return errors.New("block and allow are for keys: a rule has max and enabled")
	case !e.Until.IsZero() && (e.Endless || e.Until.Year() > 9999 || over(e.Until, time.Now())):
		return fmt.Errorf("the end, %v, is over or beyond the year 9999, or is to be none", e.Until)
	}
	for _, name := range e.Clear {
		if !slices.Contains(fieldNames, name) {
			return fmt.Errorf("unknown field %.80q: there are %s", name, strings.Join(fieldNames, ", "))
		}
	}
	if named, err := targetOf(fieldOf(t)); err != nil || named != t { // JSON cannot hold it
		return fmt.Errorf("no field can name rule %.80q, pattern %.80q: write a byte above 0x7F of a key as %%XX", t.Rule, t.Pattern)
	}
	return nil
}

// remove takes the override of a target away, and reports whether there was one.
func remove(fields map[string]string, t Target) (found bool) {
	for _, p := range placesIn(fields) { // a broken hash may have several
		found = p.target == t && p.remove(fields) || found
	}
	if _, err := targetOf(t.Rule); err != nil && !t.Keys {
		if _, is := fields[t.Rule]; is {
			delete(fields, t.Rule)
			found = true
		}
	}
	return found
}

// change changes the hash as a whole and adds a record to the history, unless make
// returns an error. The time is that of Redis.
func (e *Editor) change(ctx context.Context, record *Record, try bool, make func(fields map[string]string, now time.Time) error) error {
	once := func(tx *redis.Tx) error {
		before, err := readHash(ctx, tx, e.key)
		if err != nil {
			return err
		}
		now, err := tx.Time(ctx).Result()
		if err != nil {
			return e.wrap(err)
		}
		after := maps.Clone(before)
		if err := make(after, now); err != nil {
			return e.wrap(err)
		}
		changes := changesOf(before, after)
		if record.ID = 0; len(changes) == 0 || try {
			return nil
		}
		if err := record.number(ctx, tx, historyKey(e.key), now, changes); err != nil {
			return e.wrap(err)
		}
		return e.write(ctx, tx, record, changes)
	}
	for range maxTries {
		if err := e.client.Watch(ctx, once, e.key, historyKey(e.key)); !errors.Is(err, redis.TxFailedErr) {
			relearn(ctx, e.client, err)
			return err
		}
	}
	return e.wrap(fmt.Errorf("others have changed it %d times meanwhile: try again", maxTries))
}

// write writes changes to the hash and their record to the history.
func (e *Editor) write(ctx context.Context, tx *redis.Tx, record *Record, changes fieldChanges) error {
	written, err := tx.TxPipelined(ctx, func(write redis.Pipeliner) error {
		for field, c := range changes {
			if c[1] == nil {
				write.HDel(ctx, e.key, field)
			} else {
				write.HSet(ctx, e.key, field, *c[1])
			}
		}
		write.LPush(ctx, historyKey(e.key), storedOf(record))
		write.LTrim(ctx, historyKey(e.key), 0, maxRecords-1)
		return nil
	})
	if errors.Is(err, redis.TxFailedErr) {
		return err
	}
	for _, w := range written { // EXECABORT says less than the command that was refused
		if w.Err() != nil && !redis.HasErrorPrefix(w.Err(), "EXECABORT") {
			err = w.Err()
			break
		}
	}
	if err != nil {
		return e.wrap(err)
	}
	return nil
}

// check returns an error if a limiter would reject what the fields say.
func (e *Editor) check(fields map[string]string) error {
	switch size := sizeOf(fields); {
	case len(fields) > maxFields:
		return fmt.Errorf("%d fields, the most is %d", len(fields), maxFields)
	case size > maxBytes:
		return fmt.Errorf("%d bytes, the most is %d", size, maxBytes)
	}
	r, err := parseHash(fields)
	if err != nil {
		return err
	}
	return r.at(time.Now()).Check(e.rules...)
}

func (e *Editor) wrap(err error) error {
	return fmt.Errorf("overrides in %q: %w", e.key, err)
}

// rank orders targets: all limits, rules, keys.
func (t Target) rank() int {
	switch {
	case t.Keys:
		return 2
	case t.Rule != All:
		return 1
	}
	return 0
}
