package server

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/internal/script"
)

// surveyBatch is how many keys a survey asks a server about at a time.
const surveyBatch = 200

// A Survey is one walk over the keys of a database. Servers of a cluster are walked over
// at the same time.
type Survey struct {
	// Start is what all keys start with that matter.
	Start string
	// Group returns which group a key counts for, or less than 0 for none.
	Group func(key string) int
	// Expiry returns what a key of a group is given that never expires; 0: nothing.
	Expiry func(group int) time.Duration
	// Found hears of each key, of one at a time.
	Found func(Found)

	mu sync.Mutex // held to call Found
}

// A Found is a key that was found.
type Found struct {
	Key    string
	Group  int
	Bytes  int64
	Expiry time.Duration // below 0: there is none
	Healed bool          // it was given one
}

// A finding is what a server says about a key.
type finding struct {
	group  int
	key    string
	expiry *redis.DurationCmd
	bytes  *redis.IntCmd
	healed *redis.BoolCmd // nil: it need not or must not be
}

// err returns why nothing is known about the key; redis.Nil if it has gone, be
// it to another server of a cluster.
func (f *finding) err() error {
	err := cmp.Or(f.expiry.Err(), f.bytes.Err())
	if script.Moved(err) || err == nil && f.expiry.Val() == -2 {
		return redis.Nil
	}
	return err
}

func (f *finding) endless() bool { return f.expiry.Val() == -1 }

// Walk visits all keys of all servers. When it returns an error, what was found so far
// has been heard of.
func (v *Survey) Walk(ctx context.Context, client redis.UniversalClient) error {
	return masters(ctx, client, v.walk)
}

// walk visits all keys of a server.
func (v *Survey) walk(ctx context.Context, server redis.Cmdable) error {
	pattern := literally.Replace(v.Start) + "*"
	for cursor := uint64(0); ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		keys, next, err := server.Scan(ctx, cursor, pattern, surveyBatch).Result()
		if err != nil {
			return private.Errorf("list keys: %w", private.Hide(err))
		}
		for batch := range slices.Chunk(keys, surveyBatch) {
			if err := v.visit(ctx, server, batch); err != nil {
				return err
			}
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

// visit asks a server about some keys.
func (v *Survey) visit(ctx context.Context, server redis.Cmdable, keys []string) error {
	var found []finding
	ask := server.Pipeline()
	for _, key := range keys {
		if strings.Contains(key, checkMark) {
			continue // of a check for sharding: it is gone in seconds
		}
		if group := v.Group(key); group >= 0 {
			found = append(found, finding{group: group, key: key, expiry: ask.PTTL(ctx, key), bytes: ask.MemoryUsage(ctx, key)})
		}
	}
	if len(found) == 0 {
		return nil
	}
	_, _ = ask.Exec(ctx) // each command has its own error
	found, err := known(found)
	if err != nil {
		return private.Errorf("look at keys: %w", private.Hide(err))
	}
	defer v.add(found)
	heal := server.Pipeline()
	for i := range found {
		if f := &found[i]; f.endless() && v.Expiry(f.group) > 0 {
			f.healed = heal.PExpire(ctx, f.key, v.Expiry(f.group))
		}
	}
	_, _ = heal.Exec(ctx) // nothing, if none is ill
	for _, f := range found {
		if f.healed != nil && f.healed.Err() != nil && !script.Moved(f.healed.Err()) {
			return private.Errorf("heal keys: %w", private.Hide(f.healed.Err()))
		}
	}
	return nil
}

// known leaves out the keys that have gone.
func known(found []finding) ([]finding, error) {
	for i := range found {
		if err := found[i].err(); err != nil && err != redis.Nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(found, func(f finding) bool { return f.err() != nil }), nil
}

// add tells of keys.
func (v *Survey) add(found []finding) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, f := range found {
		v.Found(Found{f.key, f.group, f.bytes.Val(), f.expiry.Val(), f.healed != nil && f.healed.Val()})
	}
}

// literally escapes what has a meaning in a pattern.
var literally = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `^`, `\^`)
