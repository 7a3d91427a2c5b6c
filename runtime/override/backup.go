package override

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime/internal/private"
)

// A Backup is a hash with overrides and its history, as they stand in Redis.
type Backup struct {
	Fields  map[string]string
	History []string // the last change first
}

// Backup returns the hash and its history, also if a limiter would reject what they say.
func (e *Editor) Backup(ctx context.Context) (b Backup, err error) {
	if b.Fields, err = readHash(ctx, e.client, e.key); err != nil {
		return b, err
	}
	if b.History, err = e.client.LRange(ctx, historyKey(e.key), 0, -1).Result(); err != nil {
		return b, e.wrap(private.Hide(err))
	}
	b.History = slices.DeleteFunc(b.History, func(text string) bool {
		_, err := recordOf(text)
		return err != nil
	})
	return b, nil
}

// Rename has the overrides of rules be those of others, by the names of both, and returns of which
// there were any. The history keeps the old names. It is an error if two overrides then have one field.
func (b *Backup) Rename(rules map[string]string) (found map[string]bool, err error) {
	fields := make(map[string]string, len(b.Fields))
	found = make(map[string]bool)
	for field, says := range b.Fields {
		if t, err := targetOf(field); err == nil && rules[t.Rule] != "" {
			found[t.Rule] = true
			t.Rule = rules[t.Rule]
			field = fieldOf(t)
		}
		if _, twice := fields[field]; twice {
			return nil, private.Errorf("after renaming rules the overrides have the field %.80q twice", named(field))
		}
		fields[field] = says
	}
	b.Fields = fields
	return found, nil
}

// Restore writes what [Editor.Backup] has returned. Fields that are there already stay as they
// are, unless overwrite. The history is written if there is none: the numbers of two do not fit
// each other. Restore itself is one change in the history, which can be undone. Of the edit it
// needs only Who, Why and Try. It returns how many fields and records it has written.
func (e *Editor) Restore(ctx context.Context, b Backup, overwrite bool, by Edit) (fields, records int, err error) {
	for _, text := range b.History {
		if _, err := recordOf(text); err != nil {
			return 0, 0, e.wrap(private.Errorf("history: %w", err))
		}
	}
	if !by.Try && len(b.History) > 0 {
		if _, _, err := e.Restore(ctx, b, overwrite, Edit{Try: true}); err != nil {
			return 0, 0, err // what is rejected leaves no history
		}
		if records, err = e.restoreHistory(ctx, b.History); err != nil {
			return 0, 0, err
		}
	}
	record := Record{Who: by.Who, Why: by.Why, Target: Target{Rule: All}}
	err = e.change(ctx, &record, by.Try, func(now map[string]string, _ time.Time) error {
		fields = 0
		for field, says := range b.Fields {
			if is, there := now[field]; (!there || overwrite) && (!there || is != says) {
				now[field] = says
				fields++
			}
		}
		return e.check(now)
	})
	return fields, records, err
}

func (e *Editor) restoreHistory(ctx context.Context, texts []string) (written int, err error) {
	key := historyKey(e.key)
	err = e.watched(ctx, func(tx *redis.Tx) error {
		is, err := tx.LRange(ctx, key, 0, 0).Result()
		written = 0
		if err != nil || len(is) > 0 {
			return private.Hide(err)
		}
		written = len(texts)
		_, err = tx.TxPipelined(ctx, func(write redis.Pipeliner) error {
			write.RPush(ctx, key, texts)
			return nil
		})
		return err
	})
	return written, err
}
