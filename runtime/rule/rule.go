// Package rule has the words of rules: what a limit is, how it counts, whom it refuses, and what
// changes it. A [Rule] applied to a [Key] is a [Limit], which runtime.Limiter.Take decides.
//
// Package runtime has those that most programs need by the same names: runtime.Rule is [Rule].
package rule

import (
	"time"

	"github.com/rategen/rategen/internal/spec"
)

// The bounds of a rule's numbers.
const (
	MinWindow = spec.MinWindow
	MaxWindow = spec.MaxWindow

	// MaxLog is the largest max of a [SlidingLog], which stores every event.
	MaxLog = spec.MaxLog
	// MaxLogCost is the largest cost of one call to a [SlidingLog]. Redis serves nobody else
	// while it stores that many events, which takes it less than a millisecond.
	MaxLogCost = spec.MaxLogCost
	// MaxCount is the largest max and burst of the other algorithms but a [FixedWindow].
	MaxCount = spec.MaxCount
	// MaxAmount is the largest max of a [FixedWindow], 2^53-1: enough for bytes, and for money
	// in millionths of a cent.
	MaxAmount = spec.MaxAmount

	// MaxLimits is the largest number of limits on one call.
	MaxLimits = spec.MaxLimits
	// MaxKeep is the largest Keep.
	MaxKeep = spec.MaxKeep
	// MaxWeight is the largest weight of [Limit.WithShare].
	MaxWeight = spec.MaxWeight
)

// A Rule declares one limit: how much of what is admitted in which time. Generated code holds
// one Rule for every directive. A Rule must not be changed once it is in use.
type Rule struct {
	// Name identifies the rule in errors, logs, metrics and overrides.
	Name string
	// Source is where the rule was declared, as file and method: "employee.go:
	// EmployeeService.GetByID". It has no effect.
	Source string
	// Prefix starts every Redis key of the rule. Rules that share a prefix share their counts, and
	// must have the same terms, see runtime.Limiter.Register.
	// If it is empty the keys start with "rate_limit:", the Name and a colon; in the Name the
	// bytes that a [Key] escapes are escaped. A rule needs a Prefix or a Name.
	Prefix string
	// Window is the time that Max refers to, from [MinWindow] to [MaxWindow]. For a
	// [Concurrency] it is how long a permit lasts that nobody renews, and should be some seconds
	// at least: a process that stops for two thirds of it may lose its permits meanwhile.
	Window time.Duration
	// Period, in place of Window, has Max refer to periods of the calendar. The rule is then a
	// [FixedWindow], and its Window 0.
	Period Period
	// Keep is of how many periods, up to [MaxKeep], the counts are kept when they are over, for
	// runtime.Usage.Past, with a Period. A key then lives for so many periods more, and grows by
	// about 22 bytes for each, or 50 with a Reserve. It may be changed at any time.
	Keep uint8
	// Ledger says whether what was used is kept for good, of a rule with a Period.
	Ledger Ledger
	// Zone is the time zone of a Period, a name of the IANA zone table such as Europe/Berlin;
	// empty is UTC. See [Limit.WithPeriod] for callers that have zones of their own.
	Zone string
	// Anchor is where a Period begins: the day of a month; the weekday, from 1 for Monday to 7
	// for Sunday; the date in a year, as its month times 100 and its day, 401 for the 1st of
	// April. 0 is the first day. In a month that has no such day it is the last one.
	Anchor int
	// Max is how much is admitted in a window, up to [MaxLog], [MaxCount] or [MaxAmount], or
	// for a [Concurrency] at a time, up to [MaxLog]. At 0 nobody is admitted.
	Max int64
	// Algorithm is how to count, and Storage how Redis keeps a [SlidingLog].
	Algorithm Algorithm
	Storage   Storage
	// Resolution, if above 0, lets the time of an event in a [SlidingLog] fall to the start of
	// its time slice of that length, unless no other is in the window. Events then leave the window together, and up to
	// Resolution early: no time of Window less Resolution holds more than Max.
	Resolution time.Duration
	// Buckets says how a [SlidingCounter] divides its window.
	Buckets Buckets
	// Burst is how much a [TokenBucket] or [LeakyBucket] admits at once; 0 means Max. For a
	// queue it is how much may be in line, and 0 means no bound but Wait.
	Burst int64
	// Headroom, if not 0, divides a [TokenBucket] or [LeakyBucket] among the shares
	// of [Limit.WithShare], which every limit of the rule then has. The last so many tokens are for
	// shares that have used less of late than the heaviest, by their weight: one for each event that
	// they are behind, and all for one that has used half as much or less. Use of late decays by 1/e in a
	// Window. The others stay below Burst less Headroom, and nothing idles: shares that ask for more
	// than there is use it evenly, by their weights, and who asks for less gets it.
	//
	// It is at most half the burst, and at most Max. -1 is a quarter of the burst, or 1. Where an
	// override or the Max of a call leaves a lower bound, that is in force. A Block is one of the
	// share. A rule with a Headroom has no Lease and no Wait.
	Headroom int64
	// Wait is how long a call may wait for its turn instead of being refused at once. The
	// context's deadline shortens it. Calls of a limiter go on in the order of their arrival. In
	// [ModeShadow] mode nobody waits.
	Wait time.Duration
	// Block, if above 0, is for how long a caller that the limit refuses stays refused, on every
	// replica: from that first refusal on, by the clock of the store. Further tries do not
	// extend it. It is from [MinWindow] to [MaxWindow], and may be shorter or longer than
	// Window. When it ends, what is still in the window counts again. A rule with a Block has
	// no Wait, and is no [Concurrency].
	//
	// A call that can never be admitted begins no block, nor does a limit in [ModeShadow] mode.
	// A refund neither ends a block nor prevents one; runtime.Limiter.Reset ends it.
	Block time.Duration
	// Lease, if above 0, lets a process charge a key ahead for calls to come, as much as it has
	// lately used in that time, and admit these by itself. It is for keys that have more calls
	// than one Redis decides. It is whole microseconds, from 1ms to less than Window.
	//
	// All processes together admit no more than without leases. For that the store counts an
	// event for Window and Lease, and lowers a burst by what drains in a Lease, unless nothing
	// was left of it. A [FixedWindow] stays as it is. So Lease/Window of the rate is the price.
	// Keys with few calls are decided by the store. Only a limiter on a runtime.RedisStore takes
	// leases. A rule with a Lease has no Block, and is no [Concurrency] and no [LeakyBucket]
	// with a Wait.
	Lease time.Duration
	// Reserve, if above 0, is when the charge of a call comes back that was neither settled nor
	// renewed: the limiter renews it while the call runs, until it is settled, as it does with
	// permits of a [Concurrency]. So a process that dies takes nothing of the budget with it
	// for longer than Reserve. It is from [MinWindow] to [MaxWindow], and should be some
	// seconds at least. The rule is a [FixedWindow], without a Block, a Hold and a Lease. Every
	// decision that has charged it must be settled, if at its cost, or it is renewed until the
	// limiter is closed.
	//
	// A call whose process was cut off for longer is charged again when it is back, or what it
	// cost when it is settled: once. A charge has counted in its period when that is over. What
	// could not be settled within Reserve costs nothing. A key has at most 10,000 charges that
	// are not settled; then calls are refused.
	Reserve time.Duration
	// Hold lets runtime.Limiter.Hold hold back all calls on a key. A rule with a Hold has no Lease,
	// and is no [Concurrency]. A call that waits for its turn in a queue keeps its turn. Rules
	// with and without a Hold, or a Reserve, have different keys.
	Hold bool
	// Debt says what becomes of what calls turn out to cost beyond Max, see runtime.Limiter.Settle.
	Debt Debt
	// Mode is whether the limit refuses calls.
	Mode Mode
	// Message is the text of the error of a refused call, see runtime.MessageText; empty means
	// runtime.DefaultMessage.
	Message string
	// Fail is the policy for calls that the store does not decide. Its zero value is the
	// limiter's policy.
	Fail FailurePolicy
	// Invalid says what becomes of calls whose key could not be built.
	Invalid InvalidKeyPolicy
	// Outgoing says that the limit is on calls which the program makes itself, to a service with
	// limits of its own. Packages ratehttp and raterpc tell nobody of it, and answer a refusal by
	// it as want of capacity. Rules of package rateclient have it by themselves.
	Outgoing bool
	// Adaptive, if not nil, scales Max by the load. It scales the rate of a bucket and not its
	// burst.
	Adaptive Scaler
}
