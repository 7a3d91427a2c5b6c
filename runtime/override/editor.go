package override

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/private"
)

// maxTries is how often an editor begins anew when somebody else has changed the
// hash meanwhile.
const maxTries = 20

// ErrConflict is the error of an edit that would end an override without an end,
// or change the end of one.
var ErrConflict = errors.New("override: the end of an override would change")

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
		if !c.empty() {
			entries = append(entries, Entry{p.target, c})
		}
	}
	slices.SortFunc(entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(min(a.rank(), 1), min(b.rank(), 1)), cmp.Compare(a.Rule, b.Rule),
			cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.Pattern, b.Pattern))
	})
	return entries, nil
}

// Set changes the override of a target: the fields of c that are not nil replace
// those of the override that is there, and the others stay. An override has one
// end. So if fields stay, their end must be c's, or the error is [ErrConflict];
// and it is if c has an end and the override that is there has none. An override
// that has ended is none. The result is the override before and after.
func (e *Editor) Set(ctx context.Context, t Target, c Change) (before, after Change, err error) {
	switch {
	case c.empty():
		return before, after, errors.New("override: the change has no field: remove the override instead")
	case t.Rule == All && (t.Keys || c.KeyOverride != runtime.KeyOverride{Enabled: c.Enabled}):
		return before, after, errors.New("override: * is for all limits, and says enabled only: name a rule")
	case t.Rule == "":
		return before, after, errors.New("override: no rule is named")
	case c.Until.Year() > 9999 || c.ended(time.Now()):
		return before, after, private.Errorf("override: the end, %v, is over or beyond the year 9999", c.Until)
	}
	if named, err := targetOf(fieldOf(t)); err != nil || named != t { // JSON cannot hold it
		return before, after, private.Errorf("override: no field can name rule %.80q, pattern %.80q: write a byte above 0x7F of a key as %%XX", t.Rule, private.Text(t.Pattern))
	}
	err = e.edit(ctx, func(fields map[string]string) error {
		p := placeOf(fields, t)
		if before, err = p.change(fields); err != nil {
			return private.Errorf("%w: remove this override first", err)
		}
		if before.ended(time.Now()) {
			p.remove(fields)
			before, p = Change{}, placeOf(fields, t)
		}
		kept := membersOf([]byte(fields[p.field]))
		if err := before.conflict(c); err != nil {
			return err
		}
		p.put(fields, c)
		if err := e.check(fields); err != nil {
			return err
		}
		if after, err = p.change(fields); err != nil {
			return err
		}
		// A rule and the keys in its field have one end.
		keysEnd := !p.nested && len(kept.keys()) > 0 && !kept.until().Equal(c.Until)
		if keysEnd || p.nested && !after.Until.Equal(c.Until) {
			return private.Errorf("%w: it is that of the rule and of keys in one field, %.80q: give each key a field of its own", ErrConflict, named(p.field))
		}
		return nil
	})
	if err != nil {
		return Change{}, Change{}, err
	}
	return before, after, nil
}

// Remove takes the override of a target away, and reports whether there was one.
// That of a rule leaves those of its keys. A field of the hash that names no target
// is removed by its own name as the Rule.
func (e *Editor) Remove(ctx context.Context, t Target) (found bool, err error) {
	err = e.edit(ctx, func(fields map[string]string) error {
		found = false
		for _, p := range placesIn(fields) { // a broken hash may have several
			found = p.target == t && p.remove(fields) || found
		}
		if _, err := targetOf(t.Rule); err != nil && !t.Keys {
			if _, is := fields[t.Rule]; is {
				delete(fields, t.Rule)
				found = true
			}
		}
		return nil
	})
	return found && err == nil, err
}

// edit changes the hash as a whole, unless change returns an error.
func (e *Editor) edit(ctx context.Context, change func(fields map[string]string) error) error {
	try := func(tx *redis.Tx) error {
		before, err := readHash(ctx, tx, e.key)
		if err != nil {
			return err
		}
		after := maps.Clone(before)
		if err := change(after); err != nil {
			return e.wrap(err)
		}
		_, err = tx.TxPipelined(ctx, func(write redis.Pipeliner) error {
			for field := range before {
				if _, is := after[field]; !is {
					write.HDel(ctx, e.key, field)
				}
			}
			for field, value := range after {
				if was, is := before[field]; !is || was != value {
					write.HSet(ctx, e.key, field, value)
				}
			}
			return nil
		})
		if err != nil && !errors.Is(err, redis.TxFailedErr) {
			return e.wrap(private.Hide(err))
		}
		return err
	}
	for range maxTries {
		if err := e.client.Watch(ctx, try, e.key); !errors.Is(err, redis.TxFailedErr) {
			return private.Hide(err)
		}
	}
	return e.wrap(private.Errorf("others have changed it %d times meanwhile: try again", maxTries))
}

// check returns an error if a limiter would reject what the fields say.
func (e *Editor) check(fields map[string]string) error {
	switch size := sizeOf(fields); {
	case len(fields) > maxFields:
		return private.Errorf("%d fields, the most is %d", len(fields), maxFields)
	case size > maxBytes:
		return private.Errorf("%d bytes, the most is %d", size, maxBytes)
	}
	r, err := parseHash(fields)
	if err != nil {
		return err
	}
	return r.at(time.Now()).Check(e.rules...)
}

func (e *Editor) wrap(err error) error {
	if errors.Is(err, ErrConflict) {
		return err
	}
	return private.Errorf("overrides in %q: %w", e.key, err)
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
