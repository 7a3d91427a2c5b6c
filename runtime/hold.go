package runtime

import (
	"context"
	"fmt"
	"time"

	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// Hold denies all calls on the key of a limit for d, from now on by the clock of the store
// and on every replica: a peer that the calls go to has asked for that. It takes one trip.
// A key that is blocked for longer already stays so. The limit's rule has a [Rule.Hold], or
// it is [ErrInvalidLimit]. Package rateclient holds for HTTP.
//
// Calls that a hold denies have the time until it ends as their RetryAfter, and those that
// may wait for so long do. The hold does not change what is counted. [Limiter.Release]
// ends it, and [Limiter.Reset] does too.
func (l *Limiter) Hold(ctx context.Context, limit Limit, d time.Duration) error {
	if d < time.Microsecond || d > MaxWindow {
		return fmt.Errorf("%w: a hold for %v is not between 1µs and 366 days", ErrInvalidLimit, d)
	}
	return l.hold(ctx, limit, d)
}

// Release ends a hold, or another block, of the key of a limit. Another replica may deny
// calls for a moment more, see [WithDenialMemory].
func (l *Limiter) Release(ctx context.Context, limit Limit) error { return l.hold(ctx, limit, 0) }

func (l *Limiter) hold(ctx context.Context, limit Limit, d time.Duration) error {
	if l == nil {
		l = withoutStore
	}
	if err := limit.key.invalid(); err != nil {
		return err
	}
	rule, max, _, err := l.effective(&limit)
	if err != nil {
		return err
	}
	if !rule.Hold {
		return fmt.Errorf("%w: rule %q has no Hold", ErrInvalidLimit, rule.Name)
	}
	if max < 1 { // nobody is admitted anyway
		max = 1
	}
	charges := []Charge{{Rule: rule, Key: appendKey(nil, l.namespace, rule, &limit.key), Max: max, Wait: d}}
	_ = l.local.Hold(ctx, charges) // for calls that the store will not decide
	if l.store == nil {
		return errNoStore
	}
	return private.Hide(l.store.Hold(ctx, charges))
}

// hold returns a charge that holds its key, in the engine's terms.
func (c *Charge) hold() (plain terms.Charge) {
	c.Rule.setTerms(&plain.Terms, c.Max, 0)
	plain.Key, plain.At = c.Key, c.Wait.Microseconds()
	return plain
}
