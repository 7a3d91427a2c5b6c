package runtime

import (
	"context"
	"time"
)

// A Store keeps the counts of limits and decides calls. [RedisStore] shares
// them between processes, [MemoryStore] keeps them in this one. Package
// storetest holds what every Store must do.
//
// A Store must be safe for concurrent use, must not keep the slices that it is
// given after it has returned, and must give up when the context ends.
type Store interface {
	// Take decides each call: all its charges are made, or none is, in the
	// order of calls when they name the same key. It fills in the Result of
	// every charge of the calls whose Err it leaves nil.
	//
	// The error is non-nil if no call was decided for sure.
	Take(ctx context.Context, calls []Call) error

	// Peek does what Take does and charges nothing: each call finds what it
	// would find if it alone came now.
	Peek(ctx context.Context, calls []Call) error

	// Refund gives back up to Cost of what was charged to each Key at the time
	// At. What is no longer counted, or never was, is passed over; no limit
	// ever has more left than its max.
	Refund(ctx context.Context, charges []Charge) error

	// Reset forgets the keys of the charges and no other.
	Reset(ctx context.Context, charges []Charge) error
}

// A Call is what one caller wants to be charged: one or several limits, all or
// none. Its keys differ from each other.
type Call struct {
	Charges []Charge
	// Err is set by the store when this call alone could not be decided.
	Err error

	came time.Duration // the instant at which it came to the limiter; 0: unknown
}

// A Charge is one limit of a call, as a store sees it.
type Charge struct {
	// Rule says how to count.
	Rule *Rule
	// Key is the whole Redis key.
	Key []byte
	// Max is the rule's max as it holds for this call, above 0.
	Max int64
	// Cost is how many events the call stands for, from 1 to Max, or to the
	// rule's burst, and at most [MaxLogCost] for a [SlidingLog].
	Cost int64
	// Wait is the rule's Wait, or less if the caller has not got that long.
	Wait time.Duration

	Result

	limit  uint8 // which of the call's limits this is
	renews bool  // the call is to find out whether a denial still holds, see denials
}

// capacity returns the most that could ever be charged at once.
func (c *Charge) capacity() int64 { return c.Rule.capacity(c.Max) }

// A Result is what a store found about one charge.
type Result struct {
	// Allowed reports whether this limit had room. The charge was made if this
	// limit had, and every other of the call that is not in [Shadow] mode.
	Allowed bool
	// Remaining is how much is left of the limit, after the charge if it was
	// made.
	Remaining int64
	// RetryAfter is 0 if the charge is allowed, and otherwise the time until
	// it would be if nobody else came.
	RetryAfter time.Duration
	// ResetAfter is the time until the limit is whole again if nobody else
	// came.
	ResetAfter time.Duration
	// Delay is how long the caller must wait for its turn in a queue, see
	// [LeakyBucket].
	Delay time.Duration
	// At is the time that the charge counts as, by the store's clock in
	// microseconds since 1970: its own, that of its time slice, or the last of
	// its bucket. It is 0 if no charge was made.
	At int64
	// Recalled reports that the store did not look again but went by an
	// earlier denial, see [WithDenialMemory].
	Recalled bool
}
