package runtime_test

import (
	"context"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
)

// countdown is a service that calls itself, by way of its wrapper, n times.
type countdown struct{ self getter }

func (c *countdown) Get(ctx context.Context, n int) error {
	if n == 0 {
		return nil
	}
	return c.self.Get(ctx, n-1)
}

// A wrapped service is called by so many at once.
type wrapped struct {
	limiters []int // of its wrappers, the innermost first
	max      int64
	callers  int
	deep     int // how often it calls itself
	want     []string
}

// A wrapper within one of the same limiter is found by its first calls, also if many come at
// once. A service that calls itself by its wrapper is none, and neither is one with two limiters.
func TestWrappedTwice(t *testing.T) {
	twice := []string{"wrapped_twice r"}
	eachCase(t, map[string]wrapped{
		"once":  {[]int{0}, 100, 1, 0, nil},
		"twice": {[]int{0, 0}, 100, 3, 0, twice},
		"twice, by the last call that is admitted": {[]int{0, 0}, 1, 1, 0, twice},
		"twice, by many at once":                   {[]int{0, 0}, 100, 40, 0, twice},
		"a service that calls itself":              {[]int{0}, 100, 1, 5, nil},
		"two limiters":                             {[]int{0, 1}, 100, 3, 0, nil},
	}, func(t *testing.T, c wrapped) {
		var out [2]lines
		limiters := []*runtime.Limiter{runtime.New(runtime.NewMemoryStore(), out[0].Logger()), runtime.New(runtime.NewMemoryStore(), out[1].Logger())}
		service, rule := &countdown{}, &runtime.Rule{Name: "r", Window: time.Hour, Max: c.max}
		service.self = service
		for _, i := range c.limiters {
			service.self = &limitedGetter{service.self, limiters[i], rule}
		}
		concurrently(c.callers, func(int) { _ = service.self.Get(t.Context(), c.deep) })
		wantFound(t, limiters[0], &out[0], c.want...)
		wantFound(t, limiters[1], &out[1])
		ok(t, limiters[0].Close())
		ok(t, limiters[1].Close())
	})
}
