// Package spec holds what the generator and the runtime must agree on: the bounds of a
// rule's numbers, which of its options go together, and how a key is escaped. The
// generator checks directives by it, and the runtime rules that are written by hand.
package spec

import "time"

// Bounds of a rule's numbers.
const (
	MinWindow = time.Millisecond
	MaxWindow = 366 * 24 * time.Hour
	MinLease  = time.Millisecond

	MaxLog     = 1_000_000         // the max of an algorithm that stores every event
	MaxLogCost = 250               // the cost of one call to it
	MaxCount   = 1_000_000_000_000 // the max, cost and burst of one that multiplies, or adds up buckets
	MaxAmount  = 1<<53 - 1         // the max and cost of a fixed window: its sums are exact in a float64
	MaxBuckets = 1000              // of a sliding counter
	MaxLimits  = 8                 // on one call
	MaxKeep    = 60                // periods whose counts are kept

	// MaxDrain is the longest time in microseconds that a full bucket may take to drain: 142
	// years. Beyond it a microsecond would be lost in rounding.
	MaxDrain = 1 << 52
)

// These numbers of the runtime decide what the generator warns of.
const (
	Timeout    = 50 * time.Millisecond // for which a call, or a renewal, waits for Redis at most, by default
	Renewals   = 3                     // of a permit or a reservation, in the time after which it lapses
	LeaseShare = 8                     // how many times what a lease charges ahead must be left, so that others do not starve
	LeaseCalls = 4                     // for which that has to be enough
)

// DefaultMessage is the error text of a rule that has no message of its own.
const DefaultMessage = "rate limit exceeded"

// The algorithms, as directives spell them.
const (
	SlidingLog     = "sliding-log"
	SlidingCounter = "sliding-counter"
	FixedWindow    = "fixed-window"
	TokenBucket    = "token-bucket"
	LeakyBucket    = "leaky-bucket"
	Concurrency    = "concurrency"
)

// Algorithms are all of them, in the order of their constants in package rule.
var Algorithms = [...]string{SlidingLog, SlidingCounter, FixedWindow, TokenBucket, LeakyBucket, Concurrency}

// IsBucket reports whether an algorithm keeps a level that drains.
func IsBucket(algorithm string) bool { return algorithm == TokenBucket || algorithm == LeakyBucket }

// isStored reports whether every event that an algorithm counts is stored.
func isStored(algorithm string) bool { return algorithm == SlidingLog || algorithm == Concurrency }

// MostOf returns the largest max of an algorithm.
func MostOf(algorithm string) int64 {
	switch {
	case isStored(algorithm):
		return MaxLog
	case algorithm == FixedWindow:
		return MaxAmount
	}
	return MaxCount
}

// MostCost returns the largest cost of one call that an algorithm takes.
func MostCost(algorithm string) int64 {
	if isStored(algorithm) {
		return MaxLogCost
	}
	return MostOf(algorithm)
}
