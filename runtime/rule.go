package runtime

import (
	"fmt"
	"time"

	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// The bounds of a rule's numbers.
const (
	MinWindow = spec.MinWindow
	MaxWindow = spec.MaxWindow
	// MinLease is the shortest Lease.
	MinLease = spec.MinLease

	// MaxLog is the largest max of a [SlidingLog], which stores every event.
	MaxLog = spec.MaxLog
	// MaxLogCost is the largest cost of one call to a [SlidingLog]. Redis serves
	// nobody else while it stores that many events, which takes it less than a
	// millisecond.
	MaxLogCost = spec.MaxLogCost
	// MaxCount is the largest max and burst of the other algorithms.
	MaxCount = spec.MaxCount

	// MaxLimits is the largest number of limits on one call.
	MaxLimits = spec.MaxLimits
)

// maxDrain is the longest time in microseconds that a full bucket may take to
// drain.
const maxDrain = terms.MaxDrain

// DefaultMessage is the error text of a rule that has no message of its own.
const DefaultMessage = spec.DefaultMessage

// A Rule declares one limit: how much of what is admitted in which time.
// Generated code holds one Rule for every directive; hand-written code may
// declare its own in a package variable. A Rule must not be changed once it is
// in use.
type Rule struct {
	// Name identifies the rule in errors, logs, metrics and overrides.
	Name string
	// Source is where the rule was declared, as file and method:
	// "employee.go: EmployeeService.GetByID". It has no effect.
	Source string
	// Prefix starts every Redis key of the rule. Rules that share a prefix
	// share their counts. If it is empty the keys start with "rate_limit:", the
	// Name and a colon; in the Name the bytes that a [Key] escapes are escaped.
	// A rule needs a Prefix or a Name.
	Prefix string
	// Window is the time that Max refers to, from [MinWindow] to [MaxWindow]. For
	// a [Concurrency] it is how long a permit lasts that nobody renews: how soon a
	// process that has died frees its own. It should be some seconds at least: a
	// process that stops for two thirds of it may lose its permits meanwhile.
	Window time.Duration
	// Max is how much is admitted in a window, up to [MaxLog] or [MaxCount], or
	// for a [Concurrency] at a time, up to [MaxLog].
	// At 0 nobody is admitted.
	Max int64
	// Algorithm is how to count; its zero value is [SlidingLog], to which one
	// call charges at most [MaxLogCost].
	Algorithm Algorithm
	// Storage is how Redis keeps a [SlidingLog]; its zero value is [StorageZSET].
	Storage Storage
	// Resolution, if above 0, lets the time of an event in a [SlidingLog] fall
	// to the start of its time slice of that length. Events then leave the
	// window together, and up to Resolution early: no time of Window less Resolution
	// holds more than Max.
	Resolution time.Duration
	// Buckets says how a [SlidingCounter] divides its window.
	Buckets Buckets
	// Burst is how much a [TokenBucket] or [LeakyBucket] admits at once; 0
	// means Max. For a queue it is how much may be in line, and 0 means no
	// bound but Wait.
	Burst int64
	// Wait is how long a call may wait for its turn instead of being denied at
	// once. The context's deadline shortens it. In [ModeShadow] mode nobody waits.
	Wait time.Duration
	// Block, if above 0, is for how long a caller that the limit denies stays
	// denied, on every replica: from that first denial on, by the clock of the
	// store. Further tries do not extend it. It is from [MinWindow] to [MaxWindow],
	// and may be shorter or longer than Window. When it ends, what
	// was counted before counts again as far as it is still in the window. A rule
	// with a Block has no Wait, and is no [Concurrency].
	//
	// A call that can never be admitted begins no block. In [ModeShadow] mode the
	// limit begins none, and goes on as if there was none. A refund neither ends
	// a block nor prevents one; [Limiter.Reset] ends it.
	Block time.Duration
	// Hold lets [Limiter.Hold] hold back all calls on a key: what a peer asks for that the
	// calls go to. A rule with a Hold has no Lease, and is no [Concurrency]. A call that
	// waits for its turn in a queue keeps its turn. Rules with and without a Hold have
	// different keys.
	Hold bool
	// Lease, if above 0, lets a process charge a key ahead for calls to come, as
	// much as it has lately used in that time, and admit these by itself. It is for
	// keys that have more calls than one Redis decides. It is whole microseconds,
	// from [MinLease] to less than Window.
	//
	// All processes together admit no more than without leases: Max in any window of a
	// [SlidingLog] without a Resolution or of a [SlidingCounter], Burst and Max of a
	// bucket, twice Max of a [FixedWindow]. For that the store counts an event for
	// Window and Lease, and lowers a burst by what drains in a Lease, unless nothing
	// was left of it. A [FixedWindow] stays as it is. So Lease/Window
	// of the rate is the price. Keys with few calls are decided by the store. Only a
	// limiter on a [RedisStore] takes leases.
	//
	// A rule with a Lease has no Block. It is no [Concurrency], and no
	// [LeakyBucket] with a Wait.
	Lease time.Duration
	// Mode is whether the limit denies calls; its zero value is [ModeEnforce].
	Mode Mode
	// Message is the text of the error of a denied call; empty means
	// [DefaultMessage]. "{retry_after}" in it stands for the time to wait, see
	// [MessageText].
	Message string
	// Fail is the policy for calls that the store does not decide. Its zero
	// value is the limiter's policy.
	Fail FailurePolicy
	// Adaptive, if not nil, scales Max by the load. It scales the rate of a
	// bucket and not its burst.
	Adaptive Scaler

	declared   *Rule // the rule that an override was applied to, or nil
	overridden bool  // the override is one of the rule, or of the key that has this copy
}

// declaration returns the rule as it was declared, without its override.
func (r *Rule) declaration() *Rule {
	if r.declared != nil {
		return r.declared
	}
	return r
}

// A Mode says whether a limit denies calls.
type Mode uint8

const (
	// ModeEnforce denies calls that the limit has no room for.
	ModeEnforce Mode = iota
	// ModeShadow counts calls but denies none, to try a limit on real traffic. A
	// call that the limit has no room for goes on uncounted, as if it was denied.
	// A shadow limit never delays or refuses a call, whatever its Wait and
	// failure policy, its key, and its numbers are, and changes nothing for the other
	// limits of the call, whatever fails. If its key is in another slot of a cluster
	// than theirs the call may wait a millisecond longer for it.
	ModeShadow
	// ModeSoft is [ModeShadow] but for one thing: a call that the limit has no room for knows
	// it, by [Exceeded], and may do less than others.
	ModeSoft
)

// Denies reports whether a limit in the mode denies calls. One that does not counts
// only, and delays and refuses none.
func (m Mode) Denies() bool { return m == ModeEnforce }

// String returns the mode as the directive spells it.
func (m Mode) String() string {
	switch m {
	case ModeEnforce:
		return "enforce"
	case ModeShadow:
		return "shadow"
	case ModeSoft:
		return "soft"
	}
	return fmt.Sprintf("Mode(%d)", uint8(m))
}

// A FailurePolicy decides calls that the store does not.
type FailurePolicy uint8

const (
	// FailDefault leaves the choice to the limiter, see [WithFailurePolicy].
	FailDefault FailurePolicy = iota
	// FailOpen lets the call through.
	FailOpen
	// FailClosed refuses the call with [ErrUnavailable]. For a limit in [ModeShadow]
	// mode it is FailOpen.
	FailClosed
	// FailLocal lets this process decide alone, with a [MemoryStore] of the
	// limiter's own. With n replicas up to n times Max may pass, unless
	// [WithReplicas] gives each its share.
	FailLocal
)

// String returns the policy as the directive spells it.
func (p FailurePolicy) String() string {
	switch p {
	case FailDefault:
		return "default"
	case FailOpen:
		return "open"
	case FailClosed:
		return "closed"
	case FailLocal:
		return "local"
	}
	return fmt.Sprintf("FailurePolicy(%d)", uint8(p))
}

func (r *Rule) message() string {
	if r.Message == "" {
		return DefaultMessage
	}
	return r.Message
}

// Limit returns the rule applied to one key, at a cost of 1. A nil key is the
// Key without parts.
func (r *Rule) Limit(key *Key) Limit {
	if r == nil || key == nil {
		return r.bareLimit(key)
	}
	return Limit{rule: r, cost: 1, max: r.Max, key: *key} // in one go, which is quicker
}

// bareLimit is Limit without a rule or without a key.
func (r *Rule) bareLimit(key *Key) Limit {
	l := Limit{rule: r, cost: 1}
	if r != nil {
		l.max = r.Max
	}
	if key != nil {
		l.key = *key
	}
	return l
}

// A Limit is a rule applied to one call: to which key, at what cost, with
// which max. It is a plain value.
type Limit struct {
	rule *Rule
	cost int64
	max  int64

	settled int64 // see WithSettled; also lets a copy read the key in the pieces it was written in
	key     Key
}

// WithCost returns the limit with a cost of n events. A cost of 0 always
// passes and charges nothing; a negative one is [ErrInvalidLimit], and so is one
// above [MaxLogCost] that a [SlidingLog] would have to store.
func (l Limit) WithCost(n int64) Limit {
	l.cost = n
	return l
}

// WithMax returns the limit with a max of n in place of the rule's. At 0
// nobody is admitted; a negative max is [ErrInvalidLimit].
func (l Limit) WithMax(n int64) Limit {
	l.max = n
	return l
}

// defaultPrefix starts the keys of rules that have no Prefix.
const defaultPrefix = "rate_limit:"

// prefix returns the text that starts the rule's keys.
func (r *Rule) prefix() string {
	if r.Prefix != "" {
		return r.Prefix
	}
	return string(r.appendDefaultPrefix(nil))
}

// keyStart returns what the rule's keys start with.
func (r *Rule) keyStart(namespace string) string {
	if namespace != "" {
		namespace += ":"
	}
	return namespace + r.prefix()
}

// appendDefaultPrefix appends the prefix of a rule without one.
func (r *Rule) appendDefaultPrefix(dst []byte) []byte {
	if r.Name == "" {
		return dst // check refuses it
	}
	return append(spec.AppendEscaped(append(dst, defaultPrefix...), r.Name), ':')
}

// checkCost returns an [ErrInvalidLimit] if the rule could admit a cost with max
// in place of its own, but at the price of too much work for a store. A cost
// above max is no such error: it is denied before it comes to a store.
func (r *Rule) checkCost(max, cost int64) error {
	most := countings[r.counted()].cost
	if cost <= most || cost > r.capacity(max) {
		return nil
	}
	if r.Algorithm == Concurrency {
		return fmt.Errorf("%w: rule %q: cost %d is above %d, the most permits that one call may hold of a %v: count in larger units",
			ErrInvalidLimit, r.Name, cost, most, r.Algorithm)
	}
	return fmt.Errorf("%w: rule %q: cost %d is above %d, the most that one call may charge to a %v: count with a %v or a %v, or charge it in several calls",
		ErrInvalidLimit, r.Name, cost, most, r.Algorithm, SlidingCounter, TokenBucket)
}

// checkPrefix returns an [ErrInvalidLimit] if the rule has no keys of its own.
func (r *Rule) checkPrefix() error {
	switch {
	case r == nil:
		return fmt.Errorf("%w: no rule", ErrInvalidLimit)
	case r.Prefix == "" && r.Name == "":
		return fmt.Errorf("%w: the rule has neither a Prefix nor a Name: give it a Name, or its keys are those of every such rule", ErrInvalidLimit)
	}
	return nil
}

// check returns an [ErrInvalidLimit] if the rule's numbers, or the max and cost
// of a call, are out of bounds.
func (r *Rule) check(max, cost int64) error {
	switch {
	case r == nil || r.Prefix == "" && r.Name == "":
		return r.checkPrefix()
	case cost < 0:
		return fmt.Errorf("%w: rule %q: cost %d is negative", ErrInvalidLimit, r.Name, cost)
	case max < 0:
		return fmt.Errorf("%w: rule %q: max %d is negative", ErrInvalidLimit, r.Name, max)
	case r.Window < MinWindow || r.Window > MaxWindow:
		return fmt.Errorf("%w: rule %q: window %v is not between %v and 366 days", ErrInvalidLimit, r.Name, r.Window, MinWindow)
	case r.Algorithm >= algorithms || r.Storage > StoragePacked || r.Mode > ModeSoft || r.Fail > FailLocal:
		return fmt.Errorf("%w: rule %q: unknown algorithm, storage, mode or failure policy", ErrInvalidLimit, r.Name)
	case max > countings[r.counted()].max:
		return fmt.Errorf("%w: rule %q: max %d is above %d, the maximum of a %v", ErrInvalidLimit, r.Name, max, countings[r.counted()].max, r.Algorithm)
	case r.Burst < 0 || r.Burst > MaxCount:
		return fmt.Errorf("%w: rule %q: burst %d is not between 0 and %d", ErrInvalidLimit, r.Name, r.Burst, int64(MaxCount))
	case r.Wait < 0:
		return fmt.Errorf("%w: rule %q: wait %v is negative", ErrInvalidLimit, r.Name, r.Wait)
	case max > 0 && float64(r.capacity(max))*float64(r.Window.Microseconds()) > maxDrain*float64(max):
		return fmt.Errorf("%w: rule %q: a burst of %d would take more than 142 years to drain at %d in %v", ErrInvalidLimit, r.Name, r.Burst, max, r.Window)
	case r.Buckets.coarse < 0:
		return fmt.Errorf("%w: rule %q: buckets are not between 1 and %d", ErrInvalidLimit, r.Name, MaxBuckets)
	}
	if r.Resolution|r.Block|r.Lease == 0 && !r.Hold {
		return nil
	}
	fit := spec.Rule{Algorithm: r.Algorithm.String(), Window: r.Window, Resolution: r.Resolution, Wait: r.Wait, Block: r.Block, Lease: r.Lease, Hold: r.Hold}
	if err := fit.Check(); err != nil {
		return fmt.Errorf("%w: rule %q: %w", ErrInvalidLimit, r.Name, err)
	}
	return nil
}
