package runtime

import (
	"fmt"
	"time"
)

// The bounds of a rule's numbers.
const (
	MinWindow = time.Millisecond
	MaxWindow = 366 * 24 * time.Hour

	// MaxLog is the largest max of a [SlidingLog], which stores every event.
	MaxLog = 1_000_000
)

// DefaultMessage is the error text of a rule that has no message of its own.
const DefaultMessage = "rate limit exceeded"

// A Rule declares one limit: how much of what is admitted in which time.
// Generated code holds one Rule for every directive; hand-written code may
// declare its own in a package variable. A Rule must not be changed once it is
// in use.
type Rule struct {
	// Name identifies the rule in errors, logs and metrics.
	Name string
	// Source is where the rule was declared, as file:line.
	Source string
	// Prefix starts every Redis key of the rule. Rules that share a prefix
	// share their counts.
	Prefix string
	// Window is the time that Max refers to, from [MinWindow] to [MaxWindow].
	Window time.Duration
	// Max is how much is admitted in a window, up to [MaxLog]. At 0 nobody is
	// admitted.
	Max int64
	// Message is the text of the error of a denied call; empty means
	// [DefaultMessage].
	Message string
	// Fail says what becomes of a call when the store gives no answer; its
	// zero value leaves that to the limiter.
	Fail FailurePolicy
}

// A FailurePolicy says what becomes of a call when the store gives no answer.
type FailurePolicy uint8

const (
	// FailDefault leaves the choice to the limiter, see [WithFailurePolicy].
	FailDefault FailurePolicy = iota
	// FailOpen lets the call through.
	FailOpen
	// FailClosed refuses the call with [ErrUnavailable].
	FailClosed
	// FailLocal lets this process decide alone, with a [MemoryStore] of the
	// limiter's own. With n replicas up to n times Max may pass.
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

// keyTag is the end of the Redis keys of the rule's algorithm.
func (r *Rule) keyTag() string { return "" }

func (r *Rule) message() string {
	if r.Message == "" {
		return DefaultMessage
	}
	return r.Message
}

// Limit returns the rule applied to one key, at a cost of 1. A nil key is the
// Key without parts.
func (r *Rule) Limit(key *Key) Limit {
	l := Limit{rule: r, max: r.Max, cost: 1}
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
	key  Key
}

// WithCost returns the limit with a cost of n events. A cost of 0 always
// passes and charges nothing; a negative one is [ErrInvalidLimit].
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

// check returns an [ErrInvalidLimit] if the limit's numbers make no sense.
func (l *Limit) check() error {
	r := l.rule
	switch {
	case r == nil:
		return fmt.Errorf("%w: no rule", ErrInvalidLimit)
	case l.cost < 0:
		return fmt.Errorf("%w: rule %q: cost %d is negative", ErrInvalidLimit, r.Name, l.cost)
	case l.max < 0:
		return fmt.Errorf("%w: rule %q: max %d is negative", ErrInvalidLimit, r.Name, l.max)
	case l.max > MaxLog:
		return fmt.Errorf("%w: rule %q: max %d is above %d, the most a sliding log keeps", ErrInvalidLimit, r.Name, l.max, MaxLog)
	case r.Window < MinWindow || r.Window > MaxWindow:
		return fmt.Errorf("%w: rule %q: window %v is not between %v and 366 days", ErrInvalidLimit, r.Name, r.Window, MinWindow)
	}
	return nil
}
