// Package spec holds what the generator and the runtime must agree on: the bounds of a
// rule's numbers, which of its options go together, and how a key is escaped. The
// generator checks directives by it, and the runtime rules that are written by hand.
package spec

import (
	"time"

	"github.com/rategen/rategen/internal/algorithm"
)

// Bounds of a rule's numbers.
const (
	MinWindow = time.Millisecond
	MaxWindow = 366 * 24 * time.Hour
	MinLease  = time.Millisecond

	MaxLog     = algorithm.MaxLog
	MaxLogCost = algorithm.MaxLogCost
	MaxCount   = algorithm.MaxCount
	MaxAmount  = algorithm.MaxAmount
	MaxBuckets = 1000      // of a sliding counter
	MaxLimits  = 8         // on one call
	MaxKeep    = 60        // periods whose counts are kept
	MaxWeight  = 1_000_000 // of a share

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
