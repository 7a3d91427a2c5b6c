package runtime

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/internal/script"
)

// surveyBatch is how many keys a survey asks a server about at a time.
const surveyBatch = 200

// Survey finds the keys of groups, counts them and their bytes, and gives those
// that never expire the group's Expiry. It walks over all of the database, on a
// cluster all masters, with SCAN, and asks about 200 keys at a time; so it takes
// a while, is no burden to others, and may miss keys that come and go meanwhile.
// A key counts for the group with the longest prefix. Survey ends when ctx does,
// or as soon after as the client gives up on a command; the groups then hold
// what was found so far, as they do with any error.
func (s *RedisStore) Survey(ctx context.Context, groups ...*KeyGroup) error {
	if len(groups) == 0 {
		return nil
	}
	for _, g := range groups {
		if g.Prefix == "" && g.Expiry > 0 {
			return errNoPrefix
		}
	}
	v := &survey{groups: slices.Clone(groups)}
	slices.SortStableFunc(v.groups, func(a, b *KeyGroup) int {
		return cmp.Or(cmp.Compare(len(b.Prefix), len(a.Prefix)), cmp.Compare(len(b.tag), len(a.tag)))
	})
	for _, g := range groups {
		g.Keys, g.Bytes, g.Endless, g.Healed = 0, 0, 0, 0
	}
	return s.masters(ctx, v.walk)
}

var errNoPrefix = errors.New("without a prefix every key of the database would be given an expiry: " +
	"name a prefix or a namespace, or leave the expiry out")

// A survey is one walk over the keys. Servers of a cluster are walked over at
// the same time.
type survey struct {
	groups []*KeyGroup // the longest prefix first
	mu     sync.Mutex  // guards what they hold
}

// A finding is what a server says about a key.
type finding struct {
	group  *KeyGroup
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

// walk visits all keys of a server.
func (v *survey) walk(ctx context.Context, server redis.Cmdable) error {
	pattern := v.pattern()
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
func (v *survey) visit(ctx context.Context, server redis.Cmdable, keys []string) error {
	var found []finding
	ask := server.Pipeline()
	for _, key := range keys {
		if group := v.groupOf(key); group != nil {
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
		if f := &found[i]; f.endless() && f.group.Expiry > 0 {
			f.healed = heal.PExpire(ctx, f.key, f.group.Expiry)
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

// add counts keys.
func (v *survey) add(found []finding) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, f := range found {
		f.group.Keys++
		f.group.Bytes += f.bytes.Val()
		if f.endless() {
			f.group.Endless++
		}
		if f.healed != nil && f.healed.Val() {
			f.group.Healed++
		}
		if f.group.Each != nil {
			text, _ := f.group.Text(f.key)
			f.group.Each(FoundKey{f.key, text, f.bytes.Val(), f.expiry.Val()})
		}
	}
}

// groupOf returns the group that a key counts for, or nil. The keys of a check for
// sharding count for none: they are gone in seconds.
func (v *survey) groupOf(key string) *KeyGroup {
	if strings.Contains(key, checkMark) {
		return nil
	}
	for _, g := range v.groups {
		if _, has := g.Text(key); has {
			return g
		}
	}
	return nil
}

// pattern returns a pattern for SCAN that matches the keys of all groups: what
// their prefixes have in common, taken literally.
func (v *survey) pattern() string {
	common := v.groups[0].Prefix
	for _, g := range v.groups {
		for !strings.HasPrefix(g.Prefix, common) {
			common = common[:len(common)-1]
		}
	}
	return literally.Replace(common) + "*"
}

// literally escapes what has a meaning in a pattern.
var literally = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `^`, `\^`)
