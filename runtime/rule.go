package runtime

import (
	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime/rule"
)

// The words of rules are declared in package rule, which says what each means.
type (
	Rule             = rule.Rule
	Algorithm        = rule.Algorithm
	Storage          = rule.Storage
	Buckets          = rule.Buckets
	Period           = rule.Period
	Debt             = rule.Debt
	Mode             = rule.Mode
	FailurePolicy    = rule.FailurePolicy
	InvalidKeyPolicy = rule.InvalidKeyPolicy
	Scaler           = rule.Scaler
	Load             = rule.Load
	Override         = rule.Override
	KeyOverride      = rule.KeyOverride
	Key              = rule.Key
	Limit            = rule.Limit
	Source           = rule.Source
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

// Whom a [Rule] denies, and what becomes of calls that it cannot decide.
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
