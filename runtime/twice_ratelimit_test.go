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

func (g *limitedGetter) Get(ctx context.Context, n int) error {
	if g.limiter.Enabled() {
		if _, err := g.limiter.Take(ctx, g.rule.Limit(nil)); err != nil {
			return err
		}
	}
	return g.next.Get(ctx, n)
}
