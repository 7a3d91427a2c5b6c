package runtime

import (
	"context"

	"github.com/rategen/rategen/runtime/internal/terms"
)

// Warm connects to every server of the store and has it load the scripts of all
// registered rules, see [Limiter.Register], so that no request pays for it. Call it
// before the program takes requests, with a context that bounds how long it may take:
//
//	if err := limiter.Warm(ctx); err != nil {
//		slog.Warn("limits start cold", "error", err)
//	}
//
// Nothing is counted. Calls are decided in any case: an error says that a server did
// not answer, and the first calls connect and load what they need. With a store in
// memory there is nothing to do.
func (l *Limiter) Warm(ctx context.Context) error {
	store, ok := l.store.(warmer)
	if !ok {
		return nil
	}
	var rules []*Rule
	l.registered.all(func(r *Rule, _ *struct{}) bool {
		rules = append(rules, r)
		return true
	})
	return store.warm(ctx, rules)
}

// A warmer is a store with servers to connect to.
type warmer interface {
	warm(ctx context.Context, rules []*Rule) error
}

func (s *RedisStore) warm(ctx context.Context, rules []*Rule) error {
	limits := make([]terms.Terms, len(rules))
	for i, r := range rules {
		r.setTerms(&limits[i], r.Max)
	}
	return s.router.Warm(ctx, limits)
}
