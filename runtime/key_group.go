package runtime

import (
	"iter"
	"strings"
	"time"
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
	d := 2*float64(r.Window) + float64(r.Block) + float64(r.Lease)
	if most > 0 {
		d += float64(r.Window) * float64(r.capacity(most)) / float64(most)
	}
	return time.Duration(min(d, float64(century)))
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
