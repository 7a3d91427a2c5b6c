// Package bridge is how packages of this module reach what package runtime keeps to itself: what only
// adapters, clients, pages and commands of this module need. Package runtime sets its functions when
// it is loaded.
package bridge

import (
	"context"
	"time"

	"github.com/rategen/rategen/internal/peerstate"
	"github.com/rategen/rategen/runtime/rediswire"
	"github.com/rategen/rategen/runtime/rule"
)

var (
	// LimiterOf returns what a *runtime.Limiter does for this module.
	LimiterOf func(limiter any) Limiter
	// StoreOf returns what a *runtime.RedisStore does for this module.
	StoreOf func(store any) RedisStore
	// EngineOf returns the terms.Store that decides the calls of a runtime.Store, and NewStore a
	// runtime.Store by such an engine. Its clock, listeners and servers are those of the one behind
	// it, or nil. From one that is shared limiters lease.
	EngineOf func(store any) any
	NewStore func(engine, behind any, shared bool) any
	// AccountsOf returns the *accounts.Accounts of a *runtime.RedisStore.
	AccountsOf func(store any) any
	// WithExceeded returns a context in which a runtime.Limiter keeps the limits in soft mode that
	// have no room for the call.
	WithExceeded func(context.Context) context.Context
	// RecordBackend is wrapper.RecordBackend, by a rule that the refusal is told of.
	RecordBackend func(ctx context.Context, r *rule.Rule, after time.Duration, returned error)
	// NewRedisStore returns a *runtime.RedisStore on a client. The options are a []runtime.RedisOption.
	NewRedisStore func(client rediswire.Client, opts any) any
)

// A Limiter is what a runtime.Limiter does for this module, and for nobody else.
type Limiter interface {
	Operator

	// Measure records that a call which a rule admitted began at start and ends now. A rule that
	// does not adapt to latency, or nil, is passed over.
	Measure(r *rule.Rule, start time.Time)
	// Factor returns the factor that multiplies the max of a rule now: 1 if it is not adaptive.
	Factor(*rule.Rule) float64
	// HoldOff is runtime.Limiter.Hold for the results of a call, see package wrapper.
	HoldOff(context.Context, rule.Limit, time.Duration)

	// Waits tells the observers that a call waits for its turn, by a rule, in a line that is not
	// the limiter's. over is called once, when that is over.
	Waits(context.Context, *rule.Rule) (over func(admitted bool))
	// Try is runtime.Limiter.Take, into a *runtime.Decision, for a call that has waited for a time in
	// such a line. mayWait is called after a refusal. If it returns true nobody is told of that, and
	// again is true: the call comes again, or ends by TooLate or Refuse.
	Try(ctx context.Context, into any, waited time.Duration, mayWait func() bool, limits ...rule.Limit) (again bool, err error)
	// TooLate is the refusal of a call that has waited in such a line, and whose turn comes later than
	// it can wait, after a time at the soonest. It is logged, reaches the observers as one that is
	// recalled, and returns the error of runtime.Limiter.Take.
	TooLate(ctx context.Context, limit rule.Limit, waited, after time.Duration) error
	// Refuse returns the error of runtime.Limiter.Take for one that ends a wait in such a line.
	Refuse(ctx context.Context, err error) error
	// Closed is closed when no call is to wait any more.
	Closed() <-chan struct{}
	// PeerRefused tells the observers that the peer of a rule has refused a call that went out. It
	// holds nothing back.
	PeerRefused(context.Context, *rule.Rule)
	// Peer notes what the peer of a rule with a Hold has said about a key, and returns what it
	// has said to all who share the store, as of a second ago at most.
	Peer(context.Context, rule.Limit, *peerstate.Limit, peerstate.Said) peerstate.State
}
