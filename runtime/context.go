package runtime

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/terms"
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

// A recorder is a function that a context carries, see [WithRecorder] and
// [WithRefusalRecorder].
type recorder struct {
	record   func(DecisionEvent) // or nil
	refused  func(Refusal)       // or nil
	parent   *recorder           // of the context that the functions were added to, or nil
	standing standing            // refusals that refused was called with
}

type recorderKey struct{}

// anyRecorder is true once any context has a recorder, as anyExempt is for exempt ones.
var anyRecorder atomic.Bool

// WithRecorder returns a context under which record receives every limit of every decided call,
// not only the tightest one. Middleware uses it to learn which limits a request met in the
// wrappers below it.
//
// [Limiter.Take] and [Limiter.TakeEach] call record once for each limit before they return,
// with the event that [Observer.Decision] receives. If goroutines share the context, record
// must be safe for concurrent use. A recorder that the context already has goes on to receive
// events. A panic in record is contained and reported. A nil record adds nothing.
func WithRecorder(ctx context.Context, record func(DecisionEvent)) context.Context {
	if record == nil {
		return ctx
	}
	return withRecorder(ctx, &recorder{record: record})
}

func withRecorder(ctx context.Context, r *recorder) context.Context {
	if !anyRecorder.Load() {
		anyRecorder.Store(true)
	}
	r.parent, _ = ctx.Value(recorderKey{}).(*recorder)
	return context.WithValue(ctx, recorderKey{}, r)
}

// recordersOf returns the innermost recorder of a context, or nil.
func recordersOf(ctx context.Context) *recorder {
	if !anyRecorder.Load() {
		return nil
	}
	r, _ := ctx.Value(recorderKey{}).(*recorder)
	return r
}

// An exceeded holds the limits that a call has exceeded, and was not denied for.
type exceeded struct {
	parent *exceeded // of the call that this one is made by, or nil
	mu     sync.Mutex
	errors []*LimitedError
}

type exceededKey struct{}

// WithExceeded returns a context in which [Limiter.Take] keeps the limits in [ModeSoft] mode
// that have no room for the call. Generated code takes limits under it, and passes it on to the
// method.
func WithExceeded(ctx context.Context) context.Context {
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

// reportExceeded tells a call of a limit that has no room for it, if that is in soft mode.
func reportExceeded(ctx context.Context, p *plan.Plan, c *terms.Charge) {
	if p.Rule.Mode != ModeSoft {
		return
	}
	if e, _ := ctx.Value(exceededKey{}).(*exceeded); e != nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.errors = append(e.errors, &LimitedError{
			Rule: p.Name, Limit: p.Capacity, Remaining: c.Remaining, RetryAfter: c.RetryAfter, Blocked: c.Blocked, rule: p.Rule,
		})
	}
}
