package runtime

import (
	"cmp"
	"errors"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime/internal/decide"
	"github.com/rategen/rategen/runtime/internal/keytext"
	"github.com/rategen/rategen/runtime/internal/ledger"
	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/internal/recording"
	"github.com/rategen/rategen/runtime/internal/report"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// The errors of a call that was not admitted, of operations on a decision, and of overrides.
// Test for them with [errors.Is]. A [*LimitedError] has the details of a refusal.
var (
	// ErrLimited is the error of every refusal: the caller is over a limit.
	ErrLimited = decide.ErrLimited

	// ErrCostExceedsLimit is the error of a call that can never be admitted: it costs more than
	// its limit ever admits, or the limit is 0. It is [ErrLimited], too.
	ErrCostExceedsLimit = errors.New("cost exceeds the limit, the call can never be admitted")

	// ErrUnavailable is the error of a call that the store did not decide while the failure
	// policy is [FailClosed]. Its text is this one's, so that a client may read it;
	// [errors.Unwrap] returns the store's own, which names rules and servers. It has a method
	// StatusCode() int that returns 503.
	ErrUnavailable = decide.ErrUnavailable

	// ErrClosed is the error of a call that would have to wait, or does, when [Limiter.Close] is
	// called. It is [ErrUnavailable], too, so that a server answers 503.
	ErrClosed = decide.ErrClosed

	// ErrInvalidKey is the error of a key that could not be built, for instance because of a
	// nil pointer in its expression. The rule's [rule.InvalidKeyPolicy] decides whether the call may
	// go on.
	ErrInvalidKey = keytext.ErrInvalid

	// ErrInvalidLimit is [rule.ErrInvalidLimit].
	ErrInvalidLimit = rule.ErrInvalidLimit

	// ErrInvalidOverrides is the error of overrides that were read and rejected, see
	// [OverrideSource]. No call fails by it.
	ErrInvalidOverrides = private.ErrInvalidOverrides

	// ErrOtherLimiter is the error of [Limiter.Settle] and [Limiter.Refund] for a decision of
	// another [Limiter], which nothing has changed: that one can still settle it.
	ErrOtherLimiter = errors.New("another limiter has made the decision: settle it by that one")

	// ErrSettled is the error of [Limiter.Settle] and [Limiter.Refund] for a decision that was
	// settled or refunded before. Nothing has changed.
	ErrSettled = ledger.ErrSettled
)

// Never is the RetryAfter of a call that can never be admitted.
const Never time.Duration = math.MaxInt64

// A LimitedError is the refusal of a call. Its fields are those of the [Decision]: the limit
// that keeps the caller out longest. Remaining is less than the call's cost, and 0 if the
// caller is blocked. RetryAfter is above 0; for a blocked caller it is the rest of the block,
// or more if the limit has no room then. The process cap, a [rule.SourceProcess], is none of the
// caller's limits.
type LimitedError struct {
	Rule       string
	Limit      int64
	Remaining  int64
	RetryAfter time.Duration
	Blocked    bool
	Source     rule.Source

	rule   *Rule  // nil in an error that a program has made
	caller uint64 // see [recording.CallerOf], or 0
}

// Error returns the rule's message, see [MessageText].
func (e *LimitedError) Error() string {
	r := cmp.Or(e.rule, new(Rule))
	return MessageText(cmp.Or(r.Message, DefaultMessage), e.RetryAfter)
}

// Algorithm returns how the limit counts.
func (e *LimitedError) Algorithm() Algorithm { return cmp.Or(e.rule, new(Rule)).Algorithm }

// Outgoing returns [Rule.Outgoing] of the limit.
func (e *LimitedError) Outgoing() bool { return cmp.Or(e.rule, new(Rule)).Outgoing }

// Is reports whether target is [ErrLimited], or [ErrCostExceedsLimit] and the refusal is for
// ever.
func (e *LimitedError) Is(target error) bool {
	return target == ErrLimited || target == ErrCostExceedsLimit && e.RetryAfter == Never
}

// StatusCode returns 429, the HTTP status of a caller over a limit, for frameworks that ask.
func (e *LimitedError) StatusCode() int { return 429 }

// DefaultMessage is the error text of a rule that has no message of its own.
const DefaultMessage = spec.DefaultMessage

// retryAfterVerb stands for the time to wait in a message.
const retryAfterVerb = "{retry_after}"

// MessageText returns a rule's message as a caller reads it: "{retry_after}" becomes the time
// to wait, rounded up to seconds, such as 12s or 1m30s. So the text alone says when to come
// back, for people and models that see nothing else. If waiting is of no use, a message with
// the verb becomes the text of [ErrCostExceedsLimit].
func MessageText(message string, retryAfter time.Duration) string {
	if !strings.Contains(message, retryAfterVerb) {
		return message
	}
	if retryAfter == Never {
		return ErrCostExceedsLimit.Error()
	}
	whole := max(time.Second, (retryAfter + time.Second - 1).Truncate(time.Second))
	return strings.ReplaceAll(message, retryAfterVerb, zeroTrimmer.Replace(whole.String()))
}

// zeroTrimmer shortens the text of a duration of whole seconds.
var zeroTrimmer = strings.NewReplacer("h0m0s", "h", "m0s", "m")

// ClassOf returns the class of an error of a [RedisStore] or of a [Limiter] on one, such as
// [ErrUnavailable]. It is for errors of calls that were not decided: a refusal is ClassOther,
// and so is nil.
func ClassOf(err error) observe.ErrorClass { return observe.ErrorClass(decide.ClassOf(err)) }

// refuse reports the refusal of a charge, of a call that arrived at an instant, and returns the error
// for its caller.
func (l *Limiter) refuse(c *decide.Charge, d *Decision, arrived time.Duration) error {
	spare, p := spareErrorPool.Get().(*spareErrors), c.Plan
	if skipped, due := l.events.Log.RefusalDue(p.Declared, arrived, spare.stripe); due {
		l.events.Log.Refused(p.Declared, skipped, report.Refusal{Mode: p.Rule.Mode.String(), Source: d.Source.String(),
			Limit: d.Limit, Cost: c.Cost, RetryAfter: d.RetryAfter, Blocked: d.Blocked})
	}
	refusal := spare.next()
	spareErrorPool.Put(spare)
	refusal.Rule, refusal.Limit, refusal.Remaining, refusal.RetryAfter = d.Rule, d.Limit, d.Remaining, d.RetryAfter
	refusal.Blocked, refusal.Source, refusal.rule = d.Blocked, d.Source, p.Rule
	if recording.Anyone.Load() {
		refusal.caller = recording.CallerOf(c.Key)
	}
	return refusal
}

// errorsAtOnce is how many errors are allocated together. They take 2 KiB.
const errorsAtOnce = 36

// spareErrors are for refusals to come, so that each does not cost an allocation. They live as
// long as any of those that were allocated together. One goroutine at a time uses them.
type spareErrors struct {
	errors *[errorsAtOnce]LimitedError
	count  int
	stripe uint32 // of its users in a [report.StripedThrottle]
}

// spareErrorPool has about one for each processor.
var spareErrorPool = sync.Pool{New: func() any { return &spareErrors{count: errorsAtOnce, stripe: lastStripe.Add(1)} }}

var lastStripe atomic.Uint32

// next returns an error that nobody else has.
func (s *spareErrors) next() *LimitedError {
	if s.count == errorsAtOnce {
		s.errors, s.count = new([errorsAtOnce]LimitedError), 0
	}
	e := &s.errors[s.count]
	s.count++
	return e
}
