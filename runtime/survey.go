package runtime

import (
	"context"
	"time"

	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/server"
)

// A KeyGroup is the keys in Redis that start with a prefix, and what a [RedisStore.Survey]
// finds about them.
type KeyGroup struct {
	// Prefix is what the keys start with, namespace included.
	Prefix string
	// Expiry is how long a key may live on that is found without an expiry. 0 leaves such keys
	// alone, which a group without a prefix must.
	Expiry time.Duration
	// Each, if not nil, is called with each key that is found, for one at a time. Nothing else
	// is looked at meanwhile, so it may take its time.
	Each func(FoundKey)

	// Keys is how many there are. A key that Redis lists twice, as it may while it moves keys
	// in memory, counts twice.
	Keys int64
	// Bytes is the memory that they take, by MEMORY USAGE.
	Bytes int64
	// Endless is how many of them have no expiry. The limiter leaves none behind, so somebody
	// else has taken it away, or uses the prefix too.
	Endless int64
	// Healed is how many of those were given one.
	Healed int64

	tag server.Tag // what the keys end with
}

// A FoundKey is a key that [RedisStore.Survey] has found.
type FoundKey struct {
	// Key is the whole Redis key, and Text as [KeyGroup.Text] returns it.
	Key, Text string
	// Bytes is the memory that the key takes.
	Bytes int64
	// Expiry is how long it lives on without a change, or below 0 if it has no expiry.
	Expiry time.Duration
}

// KeysOf returns the keys of a rule for [RedisStore.Survey]. Their Expiry, by the overrides in
// force, cuts no key's window short; it may empty a bucket early whose max is lower for some
// calls than the rule's.
func (l *Limiter) KeysOf(r *Rule) *KeyGroup {
	g := &KeyGroup{Prefix: plan.Start(l.plans.Namespace, r)}
	for e := range l.plans.Overrides().Effective(r).All() {
		most := e.Max
		if most == plan.Unset {
			most = r.Max
		}
		n := plan.NumbersOf(e.Rule)
		g.Expiry = max(g.Expiry, n.Longest(most))
		g.tag.Add(n.Tag())
	}
	return g
}

// Text returns what stands in a key between the prefix of the group and what the keys of its
// rule end with, which is what [rule.ParseKey] reads; and false for a key of another group.
func (g *KeyGroup) Text(key string) (string, bool) { return g.group().Text(key) }

// group returns the group as a survey knows it.
func (g *KeyGroup) group() server.Group {
	return server.Group{Prefix: g.Prefix, Tag: g.tag, Expiry: g.Expiry, Found: g.add}
}

// Survey finds the keys of groups, counts them and their bytes, and gives those that never
// expire the group's Expiry. It walks over all of the database, on a cluster all masters, with
// SCAN, and asks about 200 keys at a time; so it takes a while, is no burden to others, and may
// miss keys that come and go meanwhile. A key counts for the group with the longest prefix.
// Survey ends when ctx does, or as soon after as the client gives up on a command; the groups
// then hold what was found so far, as they do with any error.
func (s *RedisStore) Survey(ctx context.Context, groups ...*KeyGroup) error {
	each := make([]server.Group, len(groups))
	for i, g := range groups {
		g.Keys, g.Bytes, g.Endless, g.Healed = 0, 0, 0, 0
		each[i] = g.group()
	}
	return server.Survey(ctx, s.client, each...)
}

// add counts a key.
func (g *KeyGroup) add(f server.Found) {
	g.Keys++
	g.Bytes += f.Bytes
	if f.Expiry == -1 {
		g.Endless++
	}
	if f.Healed {
		g.Healed++
	}
	if g.Each != nil {
		g.Each(FoundKey{f.Key, f.Text, f.Bytes, f.Expiry})
	}
}
