package runtime_test

import (
	"context"

	"github.com/rategen/rategen/runtime"
)

// A getter is what limitedGetter wraps, as rategen writes wrappers, in a file of such a name.
type getter interface {
	Get(ctx context.Context, n int) error
}

type limitedGetter struct {
	next    getter
	limiter *runtime.Limiter
	rule    *runtime.Rule
}

func (s *limitedGetter) Get(ctx context.Context, n int) error {
	if s.limiter.Enabled() {
		if _, err := s.limiter.Take(ctx, s.rule.Limit(nil)); err != nil {
			return err
		}
	}
	return s.next.Get(ctx, n)
}
