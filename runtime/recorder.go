package runtime

import (
	"context"
	"sync/atomic"
)

// A recorder is a function that a context carries, see [WithRecorder] and
// [WithRefusals].
type recorder struct {
	record  func(DecisionEvent) // or nil
	refused func(Refusal)       // or nil
	outer   *recorder           // of the context that the functions were added to, or nil
}

type recorderKey struct{}

// recording is true once any context has a recorder. Programs that use none pay
// for no lookup in the context.
var recording atomic.Bool

// WithRecorder returns a context under which record receives every limit of
// every decided call, not only the tightest one. Middleware uses it to learn
// which limits a request met in the decorators below it.
//
// [Limiter.Take] and [Limiter.TakeEach] call record once for each limit before
// they return, with the event that [Observer.Decision] receives. If goroutines
// share the context, record must be safe for concurrent use. A recorder that the
// context already has goes on to receive events. A panic in record is contained
// and reported. A nil record adds nothing.
func WithRecorder(ctx context.Context, record func(DecisionEvent)) context.Context {
	if record == nil {
		return ctx
	}
	return withRecorder(ctx, recorder{record: record})
}

func withRecorder(ctx context.Context, r recorder) context.Context {
	if !recording.Load() {
		recording.Store(true)
	}
	r.outer, _ = ctx.Value(recorderKey{}).(*recorder)
	return context.WithValue(ctx, recorderKey{}, &r)
}

// recordersOf returns the innermost recorder of a context, or nil.
func recordersOf(ctx context.Context) *recorder {
	if !recording.Load() {
		return nil
	}
	r, _ := ctx.Value(recorderKey{}).(*recorder)
	return r
}
