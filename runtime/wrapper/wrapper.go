// Package wrapper is what code that rategen generates and adapters import. Import it only to write an adapter.
//
// # Adapters
//
// An adapter for an HTTP framework runs the framework's handler inside ratehttp.Middleware, which does all of
// what follows, and passes the handler's error to ratehttp.Error. Where the framework handles errors outside
// of that, see ratehttp.IsRefused. One for another transport
//
//   - calls the handler with the context of observe.WithRefusalRecorder, and keeps the refusals;
//   - answers a request that was refused, and whose handler says nothing better, by the error of the refusal
//     that still stands: its message, its RetryAfter, and 429, or 503 for runtime.ErrUnavailable. Package
//     ratefield has the fields and messages of such an answer;
//   - says what the client was told in place of a refusal: observe.RefusedCall.
//
// An adapter for a Redis client returns [NewRedisStore].
package wrapper

import (
	"context"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rediswire"
)

// Measure records that a call which r admitted began at start and ends now. Generated code defers
// it for rules that adapt to latency. Another rule, or nil, is passed over.
func Measure(l *runtime.Limiter, r *runtime.Rule, start time.Time) {
	bridge.LimiterOf(l).Measure(r, start)
}

// HoldOff is [runtime.Limiter.Hold] for the results of a call, which say for how long nobody is to
// make another one: what hold= in a directive evaluates to. It does nothing at 0 or less. More than
// an hour counts as an hour, or as the rule's Window or the longest of its Period if that is longer.
// The hold does not end with ctx, and takes one trip. It is logged, a line a second for each rule,
// and what keeps the store from it reaches the observers, too.
func HoldOff(ctx context.Context, l *runtime.Limiter, limit runtime.Limit, d time.Duration) {
	bridge.LimiterOf(l).HoldOff(ctx, limit, d)
}

// WithExceeded returns a context in which [runtime.Limiter.Take] keeps the limits in
// [runtime.ModeSoft] mode that have no room for the call. Generated code takes limits under it, and
// passes it on to the method, which asks [runtime.Exceeded].
func WithExceeded(ctx context.Context) context.Context { return bridge.WithExceeded(ctx) }

// RecordBackend has middleware know, by observe.WithRefusalRecorder, that a backend has refused a call
// under a context: err, which the caller received, is answered as a refusal by a limit of that name,
// with the time after which the backend admits the call. An outgoing one is by a limit on the
// program itself, see [rule.Rule.Outgoing]. A time of 0 or less records nothing.
func RecordBackend(ctx context.Context, name string, outgoing bool, after time.Duration, err error) {
	if after > 0 {
		bridge.RecordBackend(ctx, &runtime.Rule{Name: name, Outgoing: outgoing}, after, err)
	}
}

// NewRedisStore returns a store on a client that is not go-redis. It is for modules that bring
// one. Programs call their functions.
func NewRedisStore(client rediswire.Client, opts ...runtime.RedisOption) *runtime.RedisStore {
	return bridge.NewRedisStore(client, opts).(*runtime.RedisStore)
}
