package runtime

import (
	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime/rule"
)

// Rules and what most programs need for them. Package rule declares them, with their fields and methods, and
// has the rest: periods of the calendar, debts, sub-windows, scalers, overrides, and the bounds of numbers.
type (
	// A Rule declares a limit: how much is admitted in which time. See [rule.Rule].
	Rule = rule.Rule
	// An Algorithm says how a rule counts. See [rule.Algorithm].
	Algorithm = rule.Algorithm
	// A Storage says how Redis keeps a [SlidingLog]. See [rule.Storage].
	Storage = rule.Storage
	// A Mode says whether a limit refuses calls. See [rule.Mode].
	Mode = rule.Mode
	// A FailurePolicy decides calls that the store does not, since Redis is down, say: [FailOpen],
	// [FailClosed] or [FailLocal]. See [rule.FailurePolicy].
	FailurePolicy = rule.FailurePolicy
	// An InvalidKeyPolicy decides calls whose key could not be built. See
	// [rule.InvalidKeyPolicy].
	InvalidKeyPolicy = rule.InvalidKeyPolicy
	// A Key is the part of a Redis key that differs between callers. See [rule.Key].
	Key = rule.Key
	// A Limit is a rule applied to one call, with its key, cost and max. See [rule.Limit].
	Limit = rule.Limit
)

// How a [Rule] counts. Package rule says more of each.
const (
	SlidingLog     = rule.SlidingLog     // exactly: Max in any window
	SlidingCounter = rule.SlidingCounter // in buckets: Max in any window, with less memory
	FixedWindow    = rule.FixedWindow    // Max in a window, and up to twice as much around its end
	TokenBucket    = rule.TokenBucket    // a Burst at once, and then Max a window, evenly
	LeakyBucket    = rule.LeakyBucket    // the same; with a Wait a queue of evenly spaced calls
	Concurrency    = rule.Concurrency    // Max calls at a time

	StorageZSET   = rule.StorageZSET   // to be read by hand
	StoragePacked = rule.StoragePacked // for large and hot limits
)

// The modes, failure policies and policies for invalid keys of a [Rule].
const (
	ModeEnforce = rule.ModeEnforce // refuses calls
	ModeShadow  = rule.ModeShadow  // counts calls, and refuses none
	ModeSoft    = rule.ModeSoft    // refuses none, and tells the call by [Exceeded]

	FailDefault = rule.FailDefault // the limiter's policy, see [WithFailurePolicy]
	FailOpen    = rule.FailOpen    // the call goes on
	FailClosed  = rule.FailClosed  // the call is refused with [ErrUnavailable]
	FailLocal   = rule.FailLocal   // this process decides alone

	InvalidShare  = rule.InvalidShare  // such calls share one budget
	InvalidRefuse = rule.InvalidRefuse // they are refused with [ErrInvalidKey]
	InvalidAdmit  = rule.InvalidAdmit  // they go on, and count nowhere
)

// The generator warns by the same timeout, or else this does not compile.
var _ [0]struct{} = [DefaultTimeout - spec.Timeout]struct{}{}
