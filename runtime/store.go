package runtime

import (
	"context"
	"time"
)

// A Store keeps the counts of limits and decides calls. [RedisStore] shares
// them between processes, [MemoryStore] keeps them in this one. Package storetest
// tests the contract of a Store.
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

	// Peek does what Take does and charges nothing: each call gets the result
	// that it would get if it alone arrived now.
	Peek(ctx context.Context, calls []Call) error

	// Settle makes each charge, which was made at the time At and has the Mark of
	// its Result, one of Settled in place of Cost. If Settled is less, the difference
	// is given back, up to what is still counted of charges made to Key at that time,
	// of a [TokenBucket] or [LeakyBucket] up to what has not drained of this one: no
	// limit ever has more left than its max. In a queue it is given back only if no
	// later charge is in line. If Settled is more, the difference is charged as of
	// now, however little room there is.
	Settle(ctx context.Context, charges []Charge) error

	// Renew keeps the permits that were charged to the key of each call at the
	// time At from lapsing for another window of their rule, a [Concurrency]. It writes them
	// again if they have lapsed or are gone, whatever Max says: the calls that
	// hold them do run. It sets At to 0 if they were reset since, and renews them
	// no more.
	//
	// The error is non-nil if nothing was renewed for sure. A call has one charge,
	// and an Err if that alone was not renewed.
	Renew(ctx context.Context, calls []Call) error

	// Hold blocks the key of each charge for everybody for Wait from now on, unless a block
	// does for longer. At a Wait of 0 it ends any block.
	Hold(ctx context.Context, charges []Charge) error

	// Reset forgets the keys of the charges and no other. Permits that are held
	// now are not written again by Renew.
	Reset(ctx context.Context, charges []Charge) error
}

// A Call is one caller's charges: one or several limits, all or none. Its keys
// differ from each other.
type Call struct {
	// Charges may be empty. The call is then admitted and charges nothing. Those of
	// limits in [Shadow] mode stand behind the others.
	Charges []Charge
	// Err is set by the store when this call alone could not be decided.
	Err error

	arrived time.Duration // the instant at which it reached the limiter; 0: unknown
	again   bool          // it has waited: only the store can say whether it is still denied
}

// enforces reports whether any limit of the call may deny it.
func (c *Call) enforces() bool { return enforces(c.Charges) }

func enforces(charges []Charge) bool {
	for i := range charges {
		if charges[i].Rule.Mode == Enforce {
			return true
		}
	}
	return false
}

// recalled reports whether the call was denied by the denial memory.
func (c *Call) recalled() bool {
	for i := range c.Charges {
		if c.Charges[i].Recalled {
			return true
		}
	}
	return false
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
	// Settled is the cost that the charge is settled at. Only Settle reads it.
	Settled int64
	// Wait is the rule's Wait, or less if the caller has not got that long.
	Wait time.Duration

	Result
	// Err is why a limit in [Shadow] mode was not decided although its call was: a
	// store sets it for what concerns that limit alone, and decides the others as if
	// it was not there. The Result then means nothing.
	Err error

	limits    uint8  // those of the call that the charge is for: bit i stands for the i-th
	own       int64  // the max before overrides and load have changed it
	source    Source // who decided this limit, if not all limits of the call were decided alike
	emptyPart bool   // a part of the key is empty
}

// capacity returns the largest cost that could ever be admitted.
func (c *Charge) capacity() int64 { return c.Rule.capacity(c.Max) }

// A Result is a store's answer about one charge.
type Result struct {
	// Allowed reports whether this limit had room. The charge was made if this
	// limit had, and every other of the call that is not in [Shadow] mode.
	Allowed bool
	// Remaining is how much is left of the limit, after the charge if it was
	// made.
	Remaining int64
	// RetryAfter is 0 if the charge is allowed, and otherwise the time until
	// it would be if no other call arrived.
	RetryAfter time.Duration
	// ResetAfter is the time until the limit is whole again if no other call
	// arrived.
	ResetAfter time.Duration
	// Delay is how long the caller must wait for its turn in a queue, see
	// [LeakyBucket].
	Delay time.Duration
	// At is the time that the charge counts as, by the store's clock in
	// microseconds since 1970: its own, that of its time slice, the last of its
	// bucket, or in a queue the end of its turn; and for permits a number of about
	// that time which no others of the key have. It is 0 if no charge was made.
	At int64
	// Mark is what a bucket must know besides At to tell how much of the charge has
	// drained: 0 if nothing had since the bucket was last empty, and more from then
	// on. It is 0 for other algorithms.
	Mark int64
	// Recalled reports that the store did not read the count again but repeated
	// an earlier denial, see [WithDenialMemory].
	Recalled bool
	// Blocked reports that a block denies the charge, see [Rule.Block]. Take begins
	// it where a limit that enforces has no room for a charge; Peek begins none.
	// RetryAfter is then its rest or, if the limit has no room for longer, the time
	// until it has; Remaining is 0.
	Blocked bool
}

// admitted reports whether every limit that may deny the call has room.
func (c *Call) admitted() bool {
	for i := range c.Charges {
		if !c.Charges[i].Allowed && c.Charges[i].Rule.Mode == Enforce {
			return false
		}
	}
	return true
}
