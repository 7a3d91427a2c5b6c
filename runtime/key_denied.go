package runtime

import (
	"context"
	"sync"

	"github.com/rategen/rategen/runtime/internal/decide"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/terms"
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
var keyTexts = sync.Pool{New: func() any { return new([terms.MaxKey]byte) }}

// keysDenied reports the keys of all limits of a decided call that had no room.
func (l *Limiter) keysDenied(ctx context.Context, charges []decide.Charge, tries []terms.Charge) {
	for i := range tries {
		if !tries[i].Allowed {
			l.keyDenied(ctx, charges[i].Plan, charges[i].Key)
		}
	}
}

// keyDenied reports one key, as it is in Redis. It copies it, so that the key may
// stay on its caller's stack.
func (l *Limiter) keyDenied(ctx context.Context, p *plan.Plan, key []byte) {
	parts := p.Parts(key)
	if parts == nil {
		return
	}
	text := keyTexts.Get().(*[terms.MaxKey]byte)
	ev := KeyDeniedEvent{Rule: p.Name, Key: append(text[:0], parts...), Shadow: p.Terms.Shadow}
	for _, o := range l.events.observers {
		notifyWith(l.events, ctx, o.KeyDenied, ev)
	}
	keyTexts.Put(text)
}
