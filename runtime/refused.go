package runtime

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime/internal/decide"
	"github.com/rategen/rategen/runtime/internal/refusals"
	"github.com/rategen/rategen/runtime/internal/server"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// A RefusedMinute is how often a rule has refused calls with one key in a minute, over all processes.
// Limiters tell it with their reports, see [Process], so it may be of the minute before. Redis keeps,
// of each minute, the 100 callers that were refused most: whom each rule refuses most goes before the
// next ones of any. A process finds these by 1,024 counters. The first 128 refusals of a caller are
// counted one by one, and after these one of 32, as 32. Refusals of limits in [ModeShadow] mode, of
// the process cap and of failure policies are not counted.
type RefusedMinute struct {
	// Start is the beginning of the minute, by the clock of Redis.
	Start time.Time
	// Rule and Key are as in a [observe.KeyDeniedEvent], but for a Key that [WithRefusals] hides. Without a
	// Rule these are the refusals of all callers that are not among the 100.
	Rule, Key string
	// Max is that of the calls, of a rule whose calls bring their own, and below 0 of others.
	Max   int64
	Count int64
}

// KeepRefusals is for how long Redis keeps what limiters have refused, without [WithRefusals].
const KeepRefusals = 24 * time.Hour

// maxKeepRefusals bounds what refusals take in Redis.
const maxKeepRefusals = 7 * 24 * time.Hour

// minSecret is how many bytes a secret has at least: others may try short ones on what they read.
const minSecret = 16

// WithRefusals sets for how long Redis keeps what the limiter has refused, see [RefusedMinute]; with
// 0 it is not told. The default is [KeepRefusals]. Keys are there as they are in Redis anyway or, with
// a secret, as keyed hashes: who knows the secret finds a caller, and nobody reads one. All limiters
// of a namespace need the same. It panics if kept is below 0 or above 7 days, or not of whole minutes,
// and if a secret that is not nil has less than 16 bytes: it may come from a variable that is not set.
func WithRefusals(kept time.Duration, secret []byte) Option {
	if kept < 0 || kept > maxKeepRefusals || kept%time.Minute != 0 {
		panic(fmt.Sprintf("runtime: WithRefusals(%v): say whole minutes, %v at most, or 0 to keep none", kept,
			maxKeepRefusals))
	}
	if secret != nil && len(secret) < minSecret {
		panic(fmt.Sprintf("runtime: WithRefusals: a secret has %d bytes at least, and this one %d: nil hides no key", minSecret, len(secret)))
	}
	return func(l *Limiter) {
		l.refused.set, l.refused.kept, l.refused.secret = true, kept, slices.Clone(secret)
	}
}

// RefusedMinutes returns what limiters with a namespace have refused, from the minute of since on, in the
// order of time.
func (s *RedisStore) RefusedMinutes(ctx context.Context, namespace string, since time.Time) ([]RefusedMinute, error) {
	found, err := server.Refused(ctx, s.client, namespace, since)
	if err != nil {
		return nil, fmt.Errorf("read what was refused: %w", err)
	}
	all := make([]RefusedMinute, len(found))
	for i, m := range found {
		all[i] = RefusedMinute(m)
	}
	return all, nil
}

// RefusedMinutes is [RedisStore.RefusedMinutes] for the store and the namespace of the limiter. A limiter on
// another store has none.
func (l *Limiter) RefusedMinutes(ctx context.Context, since time.Time) ([]RefusedMinute, error) {
	if l.redis == nil {
		return nil, nil
	}
	return l.redis.RefusedMinutes(ctx, l.plans.Namespace, since)
}

// refused counts which callers a limiter refuses, for its reports.
type refused struct {
	set     bool // kept was
	kept    time.Duration
	secret  []byte
	counter *refusals.Counter // nil: nothing is counted
}

// begin counts from now on.
func (r *refused) begin() {
	if !r.set {
		r.kept = KeepRefusals
	}
	if r.kept > 0 {
		r.counter = refusals.NewCounter()
	}
}

// take returns what was refused since the last time.
func (r *refused) take() []refusals.Refusal {
	if r.counter == nil {
		return nil
	}
	return r.counter.Take()
}

// hidden returns a key as Redis is told it.
func (r *refused) hidden(key string) string {
	if len(r.secret) == 0 {
		return key
	}
	return spec.HiddenKey(r.secret, key)
}

// count counts the keys of all limits of a refused call that had no room.
func (r *refused) count(charges []decide.Charge, tries []terms.Charge) {
	for i := range tries {
		p := charges[i].Plan
		if parts := p.Parts(charges[i].Key); parts != nil && !tries[i].Allowed && !tries[i].Shadow {
			most := int64(-1)
			if p.Declared.Max == 0 {
				most = p.Max
			}
			r.counter.Add(p.Name, parts, most)
		}
	}
}
