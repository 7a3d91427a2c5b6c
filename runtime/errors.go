package runtime

import (
	"errors"
	"math"
	"time"
)

// The errors of a call that was not let through. Test for them with
// [errors.Is]; a [*LimitedError] carries the details of a denial.
var (
	// ErrLimited is the error of every denial: the caller is over a limit.
	ErrLimited = errors.New("rate limit exceeded")

	// ErrCostExceedsLimit is the error of a denial that no waiting cures: the
	// call costs more than its limit ever admits, or the limit is 0. Such a
	// denial is also [ErrLimited], and its RetryAfter is [Never].
	ErrCostExceedsLimit = errors.New("cost exceeds the limit, the call can never be admitted")

	// ErrUnavailable is returned when the store gave no answer and the failure
	// policy is [FailClosed]. It wraps the store's own error.
	ErrUnavailable = errors.New("rate limit store unavailable")

	// ErrInvalidKey is the error of a key that could not be built, for
	// instance because of a nil pointer in its expression. The failure policy
	// decides what becomes of the call.
	ErrInvalidKey = errors.New("invalid rate limit key")

	// ErrInvalidLimit is the error of a call whose numbers make no sense: a
	// negative cost or max, a cost above [MaxLogCost] to a log, a window out of
	// bounds, one key charged twice. It is returned whatever the failure policy
	// says, and nothing is charged.
	ErrInvalidLimit = errors.New("invalid rate limit")
)

// Never is the RetryAfter of a call that can never be admitted.
const Never time.Duration = math.MaxInt64

// A LimitedError says which limit denied a call and when to come back. Its
// text is the rule's message. It is [ErrLimited].
type LimitedError struct {
	// Rule is the name of the rule that keeps the caller out longest.
	Rule string
	// Limit is the max that held for this call, or the burst of a bucket.
	Limit int64
	// Remaining is how much of the limit was left: less than the call's cost.
	Remaining int64
	// RetryAfter is the time until a call of this cost would be admitted if
	// nobody else came. It is above 0, or [Never].
	RetryAfter time.Duration

	rule *Rule
}

func newLimitedError(c *Charge) *LimitedError {
	return &LimitedError{
		Rule:       c.Rule.Name,
		Limit:      c.capacity(),
		Remaining:  c.Remaining,
		RetryAfter: c.RetryAfter,
		rule:       c.Rule,
	}
}

// Error returns the rule's message.
func (e *LimitedError) Error() string {
	if e.rule == nil {
		return DefaultMessage
	}
	return e.rule.message()
}

// Is reports whether target is [ErrLimited], or [ErrCostExceedsLimit] and the
// denial is for ever.
func (e *LimitedError) Is(target error) bool {
	return target == ErrLimited || target == ErrCostExceedsLimit && e.RetryAfter == Never
}
