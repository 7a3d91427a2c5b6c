// Package recording keeps functions in contexts, which hear of what happens under them.
package recording

import (
	"context"
	"sync/atomic"
)

// A List is a function of a type F, and those that the context had before.
type List[F any] struct {
	Func  F
	Outer *List[F] // or nil
}

type key[F any] struct{}

// Anyone is true once any context has a function. Calls of programs without one pay for no lookup
// in the context.
var Anyone atomic.Bool

// With returns a context that has a function, too.
func With[F any](ctx context.Context, f F) context.Context {
	return with(ctx, &List[F]{Func: f})
}

func with[F any](ctx context.Context, l *List[F]) context.Context {
	if !Anyone.Load() {
		Anyone.Store(true)
	}
	l.Outer = Functions[F](ctx)
	return context.WithValue(ctx, key[F]{}, l)
}

// Functions returns the functions of a type that a context has, the innermost first, or nil.
func Functions[F any](ctx context.Context) *List[F] {
	if !Anyone.Load() {
		return nil
	}
	list, _ := ctx.Value(key[F]{}).(*List[F])
	return list
}
