package runtime

import (
	"context"
	"sync"

	"github.com/rategen/rategen/runtime/internal/decide"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// An exceeded holds the limits that a call has exceeded, and was not denied for.
type exceeded struct {
	outer *exceeded // of the call that this one is made by, or nil
	mu    sync.Mutex
	found []*LimitedError
}

type exceededKey struct{}

// WithExceeded returns a context in which [Limiter.Take] keeps the limits in [ModeSoft]
// mode that have no room for the call. Generated code takes limits under it, and passes
// it on to the method.
func WithExceeded(ctx context.Context) context.Context {
	outer, _ := ctx.Value(exceededKey{}).(*exceeded)
	return context.WithValue(ctx, exceededKey{}, &exceeded{outer: outer})
}

// Exceeded returns the limits in [ModeSoft] mode that had no room for a call with this
// context, and those of the calls that it is made by; nil if there are none. A method
// asks it whether to do less:
//
//	if over := runtime.Exceeded(ctx); over != nil {
//		return s.cached(id)
//	}
//
// A limit in [ModeShadow] mode is never among them.
func Exceeded(ctx context.Context) []*LimitedError {
	var all []*LimitedError
	e, _ := ctx.Value(exceededKey{}).(*exceeded)
	for ; e != nil; e = e.outer {
		e.mu.Lock()
		all = append(all, e.found...)
		e.mu.Unlock()
	}
	return all
}

// exceed tells a call of the limits in soft mode that have no room for it.
func exceed(ctx context.Context, charges []decide.Charge, tries []terms.Charge) {
	for i := range charges {
		c := &tries[i]
		p := charges[i].By(c)
		if c.Allowed || ruleOf(p).Mode != ModeSoft {
			continue
		}
		e, ok := ctx.Value(exceededKey{}).(*exceeded)
		if !ok {
			return
		}
		e.mu.Lock()
		e.found = append(e.found, &LimitedError{
			Rule: p.Name, Limit: p.Capacity, Remaining: c.Remaining, RetryAfter: c.RetryAfter, Blocked: c.Blocked, rule: ruleOf(p),
		})
		e.mu.Unlock()
	}
}
