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
	"github.com/rategen/rategen/runtime/observe"
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

// Source names the hash as processes do that follow it, see [bridge.Process].
func (e *Editor) Source() string { return (&hash{key: e.key}).String() }

// Version returns the version of what the hash says now, which processes report that have it in force.
// The error is that of a limiter which reads the hash.
func (e *Editor) Version(ctx context.Context) (string, error) {
	says, err := Redis(e.client, e.key).Overrides(ctx)
	if err != nil {
		return "", err
	}
	return says.Version(), nil
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
	for field := range fields {
		t, c, err := changeIn(fields, field)
		if err != nil {
			return nil, e.wrap(err)
		}
		if !c.Empty() {
			entries = append(entries, Entry{t, c})
		}
	}
	slices.SortFunc(entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(min(a.rank(), 1), min(b.rank(), 1)), cmp.Compare(a.Rule, b.Rule),
			cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.Pattern, b.Pattern))
	})
	return entries, nil
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
			return e.wrap(private.Hide(err))
		}
		after := maps.Clone(before)
		if err := make(after, now); err != nil {
			return e.wrap(private.Hide(err))
		}
		changes := changesOf(before, after)
		record.ID = 0
		if len(changes) == 0 || try {
			return nil
		}
		if err := record.number(ctx, tx, historyKey(e.key), now, changes); err != nil {
			return e.wrap(private.Hide(err))
		}
		return e.write(ctx, tx, record, changes)
	}
	return e.watched(ctx, once)
}

// watched calls once until nobody else has changed the hash or its history meanwhile.
func (e *Editor) watched(ctx context.Context, once func(tx *redis.Tx) error) error {
	for range maxTries {
		if err := e.client.Watch(ctx, once, e.key, historyKey(e.key)); !errors.Is(err, redis.TxFailedErr) {
			relearn(ctx, e.client, err)
			return private.Hide(err)
		}
	}
	return e.wrap(private.Errorf("others have changed it %d times meanwhile: try again", maxTries))
}

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
		write.LTrim(ctx, historyKey(e.key), 0, int64(record.kept))
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
	if err == nil {
		return nil
	}
	if class := runtime.ClassOf(err); class == observe.ClassTimeout || class == observe.ClassConnection {
		err = private.Errorf("it may be written all the same, see the history: %w", private.Hide(err))
	}
	return e.wrap(private.Hide(err))
}

func (e *Editor) check(fields map[string]string) error {
	size := sizeOf(fields)
	if len(fields) > maxFields {
		return private.Errorf("%d fields, the most is %d", len(fields), maxFields)
	}
	if size > maxBytes {
		return private.Errorf("%d bytes, the most is %d", size, maxBytes)
	}
	r, err := parseHash(fields)
	if err != nil {
		return err
	}
	return r.at(time.Now()).Check(e.rules...)
}

func (e *Editor) wrap(err error) error {
	return private.Errorf("overrides in %q: %w", e.key, err)
}

func (t Target) rank() int {
	if t.Shares {
		return 3
	}
	if t.Keys {
		return 2
	}
	if t.Rule != All {
		return 1
	}
	return 0
}
