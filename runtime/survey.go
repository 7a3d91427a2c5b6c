package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime/internal/script"
)

// surveyBatch is how many keys a survey asks a server about at a time.
const surveyBatch = 200

// A KeyGroup is the keys in Redis that start with a prefix, and what a
// [RedisStore.Survey] finds about them.
type KeyGroup struct {
	// Prefix is what the keys start with, namespace included.
	Prefix string
	// Expiry is how long a key may live on that is found without an expiry. 0
	// leaves such keys alone, which a group without a prefix must.
	Expiry time.Duration
	// Each, if not nil, is called with each key that is found, for one at a time.
	// Nothing else is looked at meanwhile, so it may take its time.
	Each func(FoundKey)

	// Keys is how many there are. A key that Redis lists twice, as it may while
	// it moves keys in memory, counts twice.
	Keys int64
	// Bytes is the memory that they take, by MEMORY USAGE.
	Bytes int64
	// Endless is how many of them have no expiry. The limiter leaves none
	// behind, so somebody else has taken it away, or uses the prefix too.
	Endless int64
	// Healed is how many of those were given one.
	Healed int64

	tag    string // what the keys end with
	number bool   // and a number
	end    string // and this
}

// A FoundKey is a key that [RedisStore.Survey] has found.
type FoundKey struct {
	// Key is the whole Redis key.
	Key string
	// Text is what stands between the prefix of the group and what the keys of its
	// rule end with. For the keys of a rule it is what [ParseKey] reads.
	Text string
	// Bytes is the memory that the key takes.
	Bytes int64
	// Expiry is how long it lives on without a change, or below 0 if it has no
	// expiry.
	Expiry time.Duration
}

// KeysOf returns the keys of a rule for [RedisStore.Survey]. Their Expiry, by the
// overrides in force, cuts no key's window short; it may empty a bucket early whose
// max is lower for some calls than the rule's.
func (l *Limiter) KeysOf(r *Rule) *KeyGroup {
	if l == nil {
		l = withoutStore
	}
	g := &KeyGroup{Prefix: r.prefix()}
	if l.namespace != "" {
		g.Prefix = l.namespace + ":" + g.Prefix
	}
	for e := range l.ruleAndKeys(r) {
		most := e.max
		if most == ownMax {
			most = r.Max
		}
		g.Expiry = max(g.Expiry, e.rule.longest(most))
		if tag := e.rule.keyTag(); g.tag == "" {
			g.tag = tag
		} else if tag != g.tag && !g.number { // they differ by the window
			if rest, is := strings.CutSuffix(tag, blockTag); is {
				tag, g.end = rest, blockTag
			}
			g.tag, g.number = strings.TrimRight(tag, digits), true
		}
	}
	return g
}

const digits = "0123456789"

// ruleAndKeys returns a rule with its override applied, and then with those of
// its keys.
func (l *Limiter) ruleAndKeys(r *Rule) iter.Seq[*effectiveRule] {
	return func(yield func(*effectiveRule) bool) {
		e := &effectiveRule{rule: r, max: ownMax}
		if o := l.overrides.Load(); o != nil && r != nil {
			e = o.effective(l, r)
		}
		if !yield(e) || e.keys == nil {
			return
		}
		for i := range e.keys.each {
			if !yield(&e.keys.each[i]) {
				return
			}
		}
	}
}

// longest returns a time after which a key of the rule has no effect any more.
func (r *Rule) longest(most int64) time.Duration {
	const century = 100 * 366 * 24 * time.Hour
	d := 2*float64(r.Window) + float64(r.Block)
	if most > 0 {
		d += float64(r.Window) * float64(r.capacity(most)) / float64(most)
	}
	return time.Duration(min(d, float64(century)))
}

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
			return fmt.Errorf("list keys: %w", err)
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
		return fmt.Errorf("look at keys: %w", script.Clean(err))
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
			return fmt.Errorf("heal keys: %w", script.Clean(f.healed.Err()))
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

// Text returns what a key of the group has between its beginning and its end, and
// false for a key of no such group.
func (g *KeyGroup) Text(key string) (string, bool) {
	text, has := strings.CutPrefix(key, g.Prefix)
	if g.number && has {
		text, has = strings.CutSuffix(text, g.end)
		text = strings.TrimRight(text, digits)
	}
	if !has {
		return "", false
	}
	return strings.CutSuffix(text, g.tag)
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
