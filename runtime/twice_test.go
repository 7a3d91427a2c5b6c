package runtime_test

import (
	"context"
	"sync"
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

// A wrapper within one of the same limiter is found by its first calls, also if many come at
// once. A service that calls itself by its wrapper is none, and neither is one with two limiters.
func TestWrappedTwice(t *testing.T) {
	type program struct {
		*testing.T
		out lines
	}
	open := func(p *program) *runtime.Limiter {
		l := runtime.New(runtime.NewMemoryStore(), p.out.Logger())
		p.Cleanup(func() { _ = l.Close() })
		return l
	}
	rule := func() *runtime.Rule { return &runtime.Rule{Name: "r", Window: time.Hour, Max: 100} }
	eachCase(t, map[string]func(*program){
		"twice": func(p *program) {
			l, r := open(p), rule()
			once := &limitedGetter{&countdown{}, l, r}
			ok(p.T, once.Get(p.Context(), 0))
			wantFound(p.T, l, &p.out)
			twice := &limitedGetter{once, l, r}
			for range 3 {
				ok(p.T, twice.Get(p.Context(), 0))
			}
			wantFound(p.T, l, &p.out, "wrapped_twice r")
		},
		"twice, by the last call that is admitted": func(p *program) {
			l, r := open(p), rule()
			r.Max = 1
			twice := &limitedGetter{&limitedGetter{&countdown{}, l, r}, l, r}
			if twice.Get(p.Context(), 0) == nil {
				p.Error("admitted")
			}
			wantFound(p.T, l, &p.out, "wrapped_twice r")
		},
		"twice, by many at once": func(p *program) {
			l, r := open(p), rule()
			twice := &limitedGetter{&limitedGetter{&countdown{}, l, r}, l, r}
			var all sync.WaitGroup
			for range 40 {
				all.Go(func() { _ = twice.Get(p.Context(), 0) })
			}
			all.Wait()
			wantFound(p.T, l, &p.out, "wrapped_twice r")
		},
		"a service that calls itself": func(p *program) {
			l, r := open(p), rule()
			service := &countdown{}
			service.self = &limitedGetter{service, l, r}
			ok(p.T, service.self.Get(p.Context(), 5))
			wantFound(p.T, l, &p.out)
		},
		"two limiters": func(p *program) {
			inner, outer, r := open(p), open(p), rule()
			service := &limitedGetter{&limitedGetter{&countdown{}, inner, r}, outer, r}
			for range 3 {
				ok(p.T, service.Get(p.Context(), 0))
			}
			wantFound(p.T, inner, &p.out)
			wantFound(p.T, outer, &p.out)
		},
	}, func(t *testing.T, try func(*program)) { try(&program{T: t}) })
}
