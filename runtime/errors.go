package runtime

import (
	"errors"
	"math"
	"time"

	"github.com/rategen/rategen/runtime/internal/stale"
)

// The errors of a call that was not admitted, of operations on a decision, and of
// overrides.
// Test for them with [errors.Is]. A [*LimitedError] has the details of a denial.
var (
	// ErrLimited is the error of every denial: the caller is over a limit.
	ErrLimited = errors.New("rate limit exceeded")

	// ErrCostExceedsLimit is the error of a call that can never be admitted: it
	// costs more than its limit ever admits, or the limit is 0. It is also
	// [ErrLimited], and its RetryAfter is [Never].
	ErrCostExceedsLimit = errors.New("cost exceeds the limit, the call can never be admitted")

	// ErrUnavailable is the error of a call that the store did not decide while
	// the failure policy is [FailClosed]. Its text is this one's, so that a client may
	// read it. It wraps the store's own, which names rules and servers and which
	// [errors.Unwrap] returns, and it has a method StatusCode() int that returns 503.
	ErrUnavailable = errors.New("rate limit store unavailable")

	// ErrInvalidKey is the error of a key that could not be built, for
	// instance because of a nil pointer in its expression. The failure policy
	// decides whether the call may go on.
	ErrInvalidKey = errors.New("invalid rate limit key")

	// ErrInvalidLimit is the error of a limit that cannot be counted: a negative
	// cost or max, a cost above [MaxLogCost] to a log, a window out of bounds, a
	// rule with neither a Prefix nor a Name, two limits of a call that have one key and
	// count in different ways. It is returned whatever the failure policy is, and
	// nothing is charged. An invalid limit in [ModeShadow] mode is reported and left out
	// instead.
	ErrInvalidLimit = errors.New("invalid rate limit")

	// ErrInvalidOverrides is the error of overrides that were read and rejected, see
	// [OverrideEvent] and [OverrideSource]. No call fails by it.
	ErrInvalidOverrides = stale.ErrInvalid

	// ErrNotCharged is the error of [Limiter.Settle] and [Limiter.Refund] for limits
	// other than those that the decision has charged, fewer ones, or a decision of
	// another [Limiter]. Nothing has changed: the decision can still be settled.
	ErrNotCharged = errors.New("these are not the limits that the decision has charged, at the costs that it has charged, or another limiter has made it")

	// ErrSettled is the error of [Limiter.Settle] and [Limiter.Refund] for a
	// decision that was settled or refunded before. Nothing has changed.
	ErrSettled = errors.New("the decision was settled or refunded before")
)

// Never is the RetryAfter of a call that can never be admitted.
const Never time.Duration = math.MaxInt64

// A LimitedError is the denial of a call: the limit that denied it, and the time
// until it would be admitted. Its text is the rule's message. It is [ErrLimited].
type LimitedError struct {
	// Rule is the name of the rule that keeps the caller out longest.
	Rule string
	// Limit is the max that held for this call, or the burst of a bucket.
	Limit int64
	// Remaining is how much of the limit was left: less than the call's cost, and
	// 0 if the caller is blocked.
	Remaining int64
	// RetryAfter is the time until a call of this cost would be admitted if
	// no other call arrived. It is above 0, or [Never]. For a blocked caller it is
	// the rest of the block, or more if the limit has no room then.
	RetryAfter time.Duration
	// Blocked reports that the caller is blocked, by this denial or an earlier
	// one, see [Rule.Block].
	Blocked bool
	// Source is who decided. It is [SourceProcess] if the call was over the cap of the
	// process, which is none of the caller's limits.
	Source Source

	rule *Rule
}

// Error returns the rule's message, see [MessageText].
func (e *LimitedError) Error() string {
	if e.rule == nil {
		return DefaultMessage
	}
	return MessageText(e.rule.message(), e.RetryAfter)
}

// Algorithm returns how the limit counts.
func (e *LimitedError) Algorithm() Algorithm {
	if e.rule == nil {
		return SlidingLog
	}
	return e.rule.Algorithm
}

// Is reports whether target is [ErrLimited], or [ErrCostExceedsLimit] and the
// denial is for ever.
func (e *LimitedError) Is(target error) bool {
	return target == ErrLimited || target == ErrCostExceedsLimit && e.RetryAfter == Never
}

// StatusCode returns 429, the HTTP status of a caller over a limit. Frameworks
// that ask an error for its status find it.
func (e *LimitedError) StatusCode() int { return 429 }

// An unavailableError is the [ErrUnavailable] of a call.
type unavailableError struct{ cause error }

func (e unavailableError) Error() string { return ErrUnavailable.Error() }

func (e unavailableError) Is(target error) bool { return target == ErrUnavailable }

// Unwrap returns why the store did not decide.
func (e unavailableError) Unwrap() error { return e.cause }

// StatusCode returns 503.
func (e unavailableError) StatusCode() int { return 503 }
