package runtime

import (
	"context"
	"sync"
)

// A KeyDeniedEvent is a key whose limit had no room for a call.
type KeyDeniedEvent struct {
	// Rule is the rule's name.
	Rule string
	// Key is what [Key.String] returns or, for parts that are too long for a Redis
	// key, the hash that stands there. It has 200 bytes at most, unless the rule's
	// prefix is longer than that. [ParseKey] reads it. It must not be kept: the
	// bytes change when the function has returned.
	Key []byte
	// Shadow reports that the limit counts only, and did not deny the call.
	Shadow bool
}

// keyTexts holds the bytes of events under way.
var keyTexts = sync.Pool{New: func() any { return new([maxKey]byte) }}

// keysDenied reports the keys of all limits of a decided call that had no room.
func (l *Limiter) keysDenied(ctx context.Context, charges []Charge) {
	for i := range charges {
		if c := &charges[i]; !c.Allowed {
			l.keyDenied(ctx, c.Rule, c.Key)
		}
	}
}

// keyDenied reports one key, as it is in Redis. It copies it, so that the key may
// stay on its caller's stack.
func (l *Limiter) keyDenied(ctx context.Context, r *Rule, key []byte) {
	start, end := r.keyStart(l.namespace), len(key)-len(r.keyTag())
	if start > end {
		return // not a key of the rule's
	}
	text := keyTexts.Get().(*[maxKey]byte)
	ev := KeyDeniedEvent{Rule: r.Name, Key: append(text[:0], key[start:end]...), Shadow: !r.Mode.Denies()}
	for _, o := range l.events.observers {
		notifyWith(l.events, ctx, o.KeyDenied, ev)
	}
	keyTexts.Put(text)
}

// keyStart returns where in the rule's keys the parts begin.
func (r *Rule) keyStart(namespace string) int {
	start := r.prefixLen()
	if r.Prefix == "" {
		start += escapesOf(r.Name)
	}
	if namespace != "" {
		start += len(namespace) + 1
	}
	return start
}
