package runtime

import (
	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime/rule"
)

// Rules and what most programs need for them, declared in package rule. That has the rest: periods of the
// calendar, debts, sub-windows, scalers, overrides, and the bounds of numbers.
type (
	// A Rule declares a limit: how much is admitted in which time. See [rule.Rule].
	Rule = rule.Rule
	// An Algorithm says how a rule counts. See [rule.Algorithm].
	Algorithm = rule.Algorithm
	// A Storage says how Redis keeps a [SlidingLog]. See [rule.Storage].
	Storage = rule.Storage
	// A Mode says whether a limit refuses calls. See [rule.Mode].
	Mode = rule.Mode
	// A FailurePolicy decides calls that the store does not. See [rule.FailurePolicy].
	FailurePolicy = rule.FailurePolicy
	// An InvalidKeyPolicy decides calls whose key could not be built. See
	// [rule.InvalidKeyPolicy].
	InvalidKeyPolicy = rule.InvalidKeyPolicy
	// A Key is the part of a Redis key that differs between callers. See [rule.Key].
	Key = rule.Key
	// A Limit is a rule applied to one call, with its key, cost and max. See [rule.Limit].
	Limit = rule.Limit
)

// How a [Rule] counts.
const (
	SlidingLog     = rule.SlidingLog
	SlidingCounter = rule.SlidingCounter
	FixedWindow    = rule.FixedWindow
	TokenBucket    = rule.TokenBucket
	LeakyBucket    = rule.LeakyBucket
	Concurrency    = rule.Concurrency

	StorageZSET   = rule.StorageZSET
	StoragePacked = rule.StoragePacked
)

// The modes, failure policies and policies for invalid keys of a [Rule].
const (
	ModeEnforce = rule.ModeEnforce
	ModeShadow  = rule.ModeShadow
	ModeSoft    = rule.ModeSoft

	FailDefault = rule.FailDefault
	FailOpen    = rule.FailOpen
	FailClosed  = rule.FailClosed
	FailLocal   = rule.FailLocal

	InvalidShare  = rule.InvalidShare
	InvalidRefuse = rule.InvalidRefuse
	InvalidAdmit  = rule.InvalidAdmit
)

// The generator warns by the same timeout, or else this does not compile.
var _ [0]struct{} = [DefaultTimeout - spec.Timeout]struct{}{}
