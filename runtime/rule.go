package runtime

import (
	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime/rule"
)

// Rules and what they are made of, declared in package rule.
type (
	// A Rule declares a limit: how much is admitted in which time. See [rule.Rule].
	Rule = rule.Rule
	// An Algorithm says how a rule counts. See [rule.Algorithm].
	Algorithm = rule.Algorithm
	// A Storage says how Redis keeps a [SlidingLog]. See [rule.Storage].
	Storage = rule.Storage
	// Buckets divide the window of a [SlidingCounter]. See [rule.Buckets].
	Buckets = rule.Buckets
	// A Period is a period of the calendar that a rule counts in. See [rule.Period].
	Period = rule.Period
	// A Debt says what becomes of costs beyond the max of a rule. See [rule.Debt].
	Debt = rule.Debt
	// A Mode says whether a limit refuses calls. See [rule.Mode].
	Mode = rule.Mode
	// A FailurePolicy decides calls that the store does not. See [rule.FailurePolicy].
	FailurePolicy = rule.FailurePolicy
	// An InvalidKeyPolicy decides calls whose key could not be built. See
	// [rule.InvalidKeyPolicy].
	InvalidKeyPolicy = rule.InvalidKeyPolicy
	// A Scaler adapts the max of a rule to the load. See [rule.Scaler].
	Scaler = rule.Scaler
	// A Load describes the load on a rule to a Scaler. See [rule.Load].
	Load = rule.Load
	// An Override changes a rule while the program runs. See [rule.Override].
	Override = rule.Override
	// A KeyOverride changes a rule for the keys of a pattern. See [rule.KeyOverride].
	KeyOverride = rule.KeyOverride
	// A Key is the part of a Redis key that differs between callers. See [rule.Key].
	Key = rule.Key
	// A Limit is a rule applied to one call, with its key, cost and max. See [rule.Limit].
	Limit = rule.Limit
	// A Source says who decided a call. See [rule.Source].
	Source = rule.Source
)

// How a [Rule] counts, in which periods of the calendar, and what becomes of debts.
const (
	SlidingLog     = rule.SlidingLog
	SlidingCounter = rule.SlidingCounter
	FixedWindow    = rule.FixedWindow
	TokenBucket    = rule.TokenBucket
	LeakyBucket    = rule.LeakyBucket
	Concurrency    = rule.Concurrency

	StorageZSET   = rule.StorageZSET
	StoragePacked = rule.StoragePacked

	NoPeriod = rule.NoPeriod
	Day      = rule.Day
	Week     = rule.Week
	Month    = rule.Month
	Year     = rule.Year

	DebtDefault = rule.DebtDefault
	DebtRefuse  = rule.DebtRefuse
	DebtCarry   = rule.DebtCarry
	DebtForgive = rule.DebtForgive
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

// The sources of a [Decision].
const (
	SourceNone     = rule.SourceNone
	SourceStore    = rule.SourceStore
	SourceRecalled = rule.SourceRecalled
	SourceLocal    = rule.SourceLocal
	SourceFailure  = rule.SourceFailure
	SourceProcess  = rule.SourceProcess
	SourceLease    = rule.SourceLease
)

// The bounds of a rule's numbers.
const (
	MinWindow  = rule.MinWindow
	MaxWindow  = rule.MaxWindow
	MaxLog     = rule.MaxLog
	MaxLogCost = rule.MaxLogCost
	MaxCount   = rule.MaxCount
	MaxAmount  = rule.MaxAmount
	MaxBuckets = rule.MaxBuckets
	MaxLimits  = rule.MaxLimits
	MaxKeep    = rule.MaxKeep
)

// EqualBuckets is [rule.EqualBuckets].
func EqualBuckets(n int) Buckets { return rule.EqualBuckets(n) }

// LayeredBuckets is [rule.LayeredBuckets].
func LayeredBuckets(coarse, fine int) Buckets { return rule.LayeredBuckets(coarse, fine) }

// AdaptiveBuckets is [rule.AdaptiveBuckets].
func AdaptiveBuckets() Buckets { return rule.AdaptiveBuckets() }

// ParseKey is [rule.ParseKey].
func ParseKey(text string) (*Key, error) { return rule.ParseKey(text) }

// The generator warns by the same timeout, or else this does not compile.
var _ [0]struct{} = [DefaultTimeout - spec.Timeout]struct{}{}
