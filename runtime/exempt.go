package runtime

import (
	"context"
	"sync/atomic"
)

type exemptKey struct{}

// exempting is true once any context is exempt. Programs without one pay for no lookup
// in the context.
var exempting atomic.Bool

// WithoutLimits returns a context whose calls no limit holds for, as if [WithEnabled]
// said so for them alone: they are not counted and not reported, and the cap of the
// process does not bound them. Middleware gives it to clients that a program knows, such
// as its own health checks.
func WithoutLimits(ctx context.Context) context.Context {
	exempting.Store(true)
	return context.WithValue(ctx, exemptKey{}, true)
}

// isExempt reports whether no limit holds for calls with a context.
func isExempt(ctx context.Context) bool {
	return exempting.Load() && ctx.Value(exemptKey{}) != nil
}
