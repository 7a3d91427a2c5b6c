package runtime

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

type exemptKey struct{}

// anyExempt is true once any context is exempt. Calls of programs without one pay for no lookup
// in the context.
var anyExempt atomic.Bool

// WithoutLimits returns a context whose calls are not limited, counted or reported, not even
// by the process cap, as if [WithEnabled] switched limits off for them alone. Middleware
// gives it to clients that a program knows, such as its own health checks.
func WithoutLimits(ctx context.Context) context.Context {
	anyExempt.Store(true)
	return context.WithValue(ctx, exemptKey{}, true)
}

// isExempt reports whether no limit holds for calls with a context.
func isExempt(ctx context.Context) bool { return ctx.Value(exemptKey{}) != nil }

// An exceeded holds the limits that a call has exceeded, and was not refused for.
type exceeded struct {
	parent *exceeded // of the call that this one is made by, or nil
	mu     sync.Mutex
	errors []*LimitedError
}

type exceededKey struct{}

// withExceeded implements [bridge.WithExceeded].
func withExceeded(ctx context.Context) context.Context {
	outer, _ := ctx.Value(exceededKey{}).(*exceeded)
	return context.WithValue(ctx, exceededKey{}, &exceeded{parent: outer})
}

// Exceeded returns the limits in [ModeSoft] mode that had no room for a call with this context,
// and those of the calls that it is made by; nil if there are none. A method asks it whether to
// do less:
//
//	if over := runtime.Exceeded(ctx); over != nil {
//		return s.cached(id)
//	}
//
// A limit in [ModeShadow] mode is never among them.
func Exceeded(ctx context.Context) []*LimitedError {
	var all []*LimitedError
	e, _ := ctx.Value(exceededKey{}).(*exceeded)
	for ; e != nil; e = e.parent {
		e.mu.Lock()
		all = append(all, e.errors...)
		e.mu.Unlock()
	}
	return all
}

// exceed tells a call of a limit in soft mode that has no room for it.
func exceed(ctx context.Context, r *Rule, limit, remaining int64, retryAfter time.Duration, blocked bool) {
	if e, _ := ctx.Value(exceededKey{}).(*exceeded); e != nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.errors = append(e.errors, &LimitedError{
			Rule: r.Name, Limit: limit, Remaining: remaining, RetryAfter: retryAfter, Blocked: blocked, rule: r,
		})
	}
}
