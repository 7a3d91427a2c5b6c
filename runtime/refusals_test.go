package runtime_test

import (
	"errors"
	"testing"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
)

// Listeners nest, a panic in one is contained, and nil is none.
func TestRefusalsNest(t *testing.T) {
	t.Parallel()
	var panics recorder[observe.PanicEvent]
	limiter := inMemory(observing(observe.Observer{Panic: panics.add}))
	var outer, inner, decisions int
	ctx := observe.WithRefusalRecorder(t.Context(), func(r observe.Refusal) {
		if r.Err == r.Returned {
			outer++
		}
	})
	ctx = observe.WithRecorder(ctx, func(observe.DecisionEvent) { decisions++ })
	ctx = observe.WithRefusalRecorder(ctx, func(observe.Refusal) { panic("refusals") })
	ctx = observe.WithRefusalRecorder(ctx, func(observe.Refusal) { inner++ })
	equal(t, "a context with one more that is nil", observe.WithRefusalRecorder(ctx, nil), ctx)
	_, err := limiter.Take(ctx, perHour(0).Limit(nil))
	if !errors.Is(err, runtime.ErrLimited) || outer != 1 || inner != 1 || decisions != 1 || !counted(&panics)["recorder"] {
		t.Error(err, outer, inner, decisions, panics.all())
	}
}
