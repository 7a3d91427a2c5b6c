package runtime

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/server"
)

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
	g := &KeyGroup{Prefix: r.prefix()}
	if l.namespace != "" {
		g.Prefix = l.namespace + ":" + g.Prefix
	}
	for e := range l.ruleAndKeys(r) {
		most := e.max
		if most == ownMax {
			most = r.Max
		}
		n := e.rule.numbers()
		g.Expiry = max(g.Expiry, n.Longest(most))
		if tag := n.Tag(); g.tag == "" {
			g.tag = tag
		} else if tag != g.tag && !g.number { // they differ by the window
			if rest, is := strings.CutSuffix(tag, plan.BlockTag); is {
				tag, g.end = rest, plan.BlockTag
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
	groups = slices.Clone(groups)
	slices.SortStableFunc(groups, func(a, b *KeyGroup) int {
		return cmp.Or(cmp.Compare(len(b.Prefix), len(a.Prefix)), cmp.Compare(len(b.tag), len(a.tag)))
	})
	start := groups[0].Prefix
	for _, g := range groups {
		if g.Prefix == "" && g.Expiry > 0 {
			return errNoPrefix
		}
		for !strings.HasPrefix(g.Prefix, start) {
			start = start[:len(start)-1]
		}
	}
	for _, g := range groups {
		g.Keys, g.Bytes, g.Endless, g.Healed = 0, 0, 0, 0
	}
	survey := server.Survey{
		Start:  start,
		Expiry: func(group int) time.Duration { return groups[group].Expiry },
		Group: func(key string) int {
			return slices.IndexFunc(groups, func(g *KeyGroup) bool {
				_, has := g.Text(key)
				return has
			})
		},
		Found: func(f server.Found) { groups[f.Group].add(f) },
	}
	return survey.Walk(ctx, s.client)
}

var errNoPrefix = errors.New("without a prefix every key of the database would be given an expiry: " +
	"name a prefix or a namespace, or leave the expiry out")

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
		text, _ := g.Text(f.Key)
		g.Each(FoundKey{f.Key, text, f.Bytes, f.Expiry})
	}
}
