package runtime

import (
	"context"
	"fmt"
	"time"
)

// An Observer is a set of functions that a [Limiter] and its store call when something happens.
// Metrics, traces and alerts are built on it. A nil function costs nothing.
//
// The functions are called from many goroutines. Those that receive a context are called on the
// path of a call and with its context, so they must be quick. A panic in a function is contained
// and reported.
//
// The Rule of an event is the name of a rule. These are private: the keys of a [KeyDeniedEvent],
// a [ThresholdEvent], a [CallEvent] and a [SettlementEvent], and the Node of a [BreakerEvent]. The texts of
// errors in events hold neither a caller's key nor a server's address; their causes, by
// [errors.Unwrap], may. All else fits the labels of a metric: the names of rules come from the
// program, the other words from short lists.
type Observer struct {
	// Attach is called by [New] with every limiter that has the observer, before anybody else
	// has that limiter, and Detach by its first [Limiter.Close] when it has ended. Metrics keep
	// it meanwhile, to read its rules when they are asked for.
	Attach, Detach func(*Limiter)
	// Decision is called for every limit of a decided call.
	Decision func(context.Context, DecisionEvent)
	// KeyDenied is called for every key whose limit had no room. Keys are made of what callers
	// send: show them to nobody who may not see that. The process cap has none.
	KeyDenied func(context.Context, KeyDeniedEvent)
	// Threshold is called when a key has used 80 and 100 percent of a rule with a Period, each
	// once a period over all processes. A goroutine of the limiter does so, with one event after
	// the other.
	Threshold func(ThresholdEvent)
	// Call and Settlement are for recordings: what was asked of which key. Both have the keys of
	// callers, which are private.
	Call       func(context.Context, CallEvent)
	Settlement func(context.Context, SettlementEvent)
	// The others are called with each event of their kind.
	Failure     func(context.Context, FailureEvent)
	Hidden      func(context.Context, HiddenEvent)
	Wait        func(context.Context, WaitEvent)
	PeerRefused func(context.Context, PeerRefusedEvent)
	Hold        func(context.Context, HoldEvent)
	Breaker     func(BreakerEvent)
	Override    func(OverrideEvent)
	Scale       func(ScaleEvent)
	Memory      func(MemoryEvent)
	Panic       func(PanicEvent)
}

// WithObserver adds an observer, which must not be changed any more. Several observers are
// called in the order of the options. A nil observer adds nothing.
//
// Events of a store reach every limiter on it until [Limiter.Close]. An observer that several
// of these limiters share is called once for each event.
func WithObserver(o *Observer) Option { return func(l *Limiter) { l.events.observe(o) } }

// A DecisionEvent is the decision about one limit of a call. Its Blocked, Limit, RetryAfter and
// ResetAfter are those of a [Decision] about this limit alone.
type DecisionEvent struct {
	Rule    string
	Verdict Verdict
	Blocked bool
	// Source is who decided this limit. It is [SourceNone] if the limit was not looked up,
	// because another one denied the call already.
	Source Source
	// Mode, Algorithm and Window are those of the rule with its overrides. The Window of a rule
	// with a Period is how long the present one is, by the clock of this process.
	Mode        Mode
	Algorithm   Algorithm
	Window      time.Duration
	Cost, Limit int64
	// Max is how much is admitted in a window in the long run, whatever the burst.
	Max int64
	// Remaining is how much of the limit is left: all of it where nothing was counted.
	Remaining              int64
	RetryAfter, ResetAfter time.Duration
	// MoreAfter is the time until there is room for one more, of an admitted call that has left
	// nothing of a sliding log or counter. It is 0 otherwise, and where that is not known.
	MoreAfter time.Duration
	// EmptyPart reports that a part of the call's key is empty. All callers that lack the same
	// part share one limit, so it may say that something is missing.
	EmptyPart bool
	// InvalidKey reports that the call's key could not be built, so that it shares a limit with
	// all others of which the same part could not, see [InvalidShare].
	InvalidKey bool
	// Outgoing is [Rule.Outgoing].
	Outgoing bool
	// Overridden reports that an override of the rule, or of the key, holds for this call. An
	// override that removes the limit leaves no decision to report.
	Overridden bool
	// Latency is how long deciding the call took, without any waiting for its turn.
	Latency time.Duration
}

// A Verdict is the outcome of one limit of a call.
type Verdict uint8

const (
	// VerdictAdmitted: the limit had room, or a failure policy let the call pass.
	VerdictAdmitted Verdict = iota
	// VerdictDenied: the limit had no room.
	VerdictDenied
	// VerdictShadowDenied: the call went on, and a limit in [ModeShadow] or [ModeSoft] mode had
	// no room for it.
	VerdictShadowDenied
	// VerdictNotCharged: another limit of the call had no room. This one had, or was not looked
	// up, as is one in [ModeShadow] mode.
	VerdictNotCharged
	// VerdictUnavailable: nothing could decide, and a rule of the call fails closed.
	VerdictUnavailable
)

// String returns the verdict in lower case.
func (v Verdict) String() string {
	names := [...]string{"admitted", "denied", "shadow_denied", "not_charged", "unavailable"}
	if int(v) < len(names) {
		return names[v]
	}
	return fmt.Sprintf("Verdict(%d)", uint8(v))
}

// A ThresholdEvent is a key that has used a share of a rule with a Period. The store tells it
// with its answer to the call, the settlement or the renewal that takes the count over the
// share: once in a period, over all processes whose limiters have a Threshold function,
// whatever is refunded, leased or called with another Zone or Anchor later. A higher max has
// its shares told anew, and a max that follows the load has not. [Limiter.Reset] begins anew.
//
// With a [Rule.Lease] what processes hold counts as used, so a share is told up to a grant
// early. Nothing is told of a max that was lowered to less than what is used, until something is
// counted again, nor of what the store has not decided. An event is lost if the process ends
// just then, or the store's answer is lost. Rules without a Period have none: what is used of
// them rises and falls all the time.
type ThresholdEvent struct {
	Rule string
	// Key is as in a [KeyDeniedEvent], and as private, and may be kept.
	Key string
	// Percent is 80 or 100.
	Percent int
	// Used is how much of Limit, the max that held, was used. It is above Limit if calls have
	// turned out to cost more.
	Used, Limit int64
	// ResetAfter is the time until the period ends.
	ResetAfter time.Duration
	// Shadow reports that the limit denies nobody.
	Shadow bool
}

// A FailureEvent is a limit that the store did not decide, or whose key could not be built: the
// class of the error, and the policy that decided instead. A limit in [ModeShadow] mode refuses
// nobody, whatever the policy.
type FailureEvent struct {
	Rule   string
	Class  ErrorClass
	Policy FailurePolicy
	// Settling reports that [Limiter.SettleLater] could not settle a decision: its cost stays as
	// it was reserved. Holding reports that the results of a call ask to hold calls back, see
	// [Limiter.HoldOff], and that the store does not. There is no Policy then.
	Settling, Holding bool
	// Err is why.
	Err error
}

// A WaitEvent is a call that begins to wait for its turn, see [Rule.Wait] and [Limiter.Waits],
// or whose waiting is over. The two events of a call have the same Rule: the one that, when the
// call begins to wait, keeps it for longest.
type WaitEvent struct {
	Rule string
	// Waiting is true when the call begins to wait, and false when that is over.
	Waiting bool
	// Waited is how long it has waited in all, trips to the store included, when it is over.
	Waited time.Duration
	// Admitted reports that the call then went on. Otherwise it was denied, not decided, or its
	// context ended.
	Admitted bool
}

// A HiddenEvent is a call that a rule has refused, and whose client was told of something else,
// see [Refusal.Hidden].
type HiddenEvent struct {
	Rule string
	// Served reports that this was a success: the program had something in place of what was
	// refused.
	Served bool
}

// A PeerRefusedEvent is a call that went out and that its peer has refused. The rule counts
// calls to the peer.
type PeerRefusedEvent struct{ Rule string }

// A HoldEvent is the end of a [Limiter.Hold] or [Limiter.Release], by this process, of some key
// of a rule.
type HoldEvent struct {
	Rule string
	// For is for how long calls are held back from now on. It is 0 for a release.
	For time.Duration
	// Err says why the store does not do so, or is nil.
	Err error
}

// A BreakerEvent is a circuit breaker of the store that opened or closed.
type BreakerEvent struct {
	// Open is true if calls no longer wait for the store, but for a probe now and then.
	Open bool
	// Node is the address of the server that the breaker is for: for metrics and pages that
	// only operators see. It is empty if the store has one server, or the address is unknown.
	Node string
}

// An OverrideEvent reports overrides that come into force or, if Err is not nil, that do not
// because of it. An error that stays the same is reported once a minute, and an event without
// Err tells that it is over.
type OverrideEvent struct {
	// Rules is how many rules the overrides in force are for.
	Rules int
	// Enabled is false if they switch all limits off.
	Enabled bool
	// Err is why others are not in force, or nil. If it is [ErrInvalidOverrides], they were
	// rejected, and stay so until somebody corrects them. Otherwise their source could not be
	// read: whether there are others is unknown.
	Err error
}

// A ScaleEvent is the new factor of an adaptive rule's max.
type ScaleEvent struct {
	Rule   string
	Factor float64
}

// A MemoryEvent is a reading of the memory of one Redis, in bytes.
type MemoryEvent struct {
	// Used is what Redis uses, Max what it may use: its maxmemory or, without one, the memory
	// of its machine.
	Used, Max int64
	// High reports that Used is above the threshold of the watch.
	High bool
	// Evicted is how many keys Redis, or all servers of a cluster, have dropped for want of
	// memory since the reading before. Some may have been counts of limits: their callers have
	// their whole limits again.
	Evicted int64
}

// A PanicEvent is a contained panic in a function that the limiter was given, by its kind:
// observer, recorder, log handler, override source, scaler, kill switch, denied (see
// [WithRefusalError]), redis client or store.
type PanicEvent struct{ In string }

// A KeyDeniedEvent is a key whose limit had no room for a call.
type KeyDeniedEvent struct {
	Rule string
	// Key is what [Key.String] returns or, for parts that are too long for a Redis key, the
	// hash that stands there. It has 200 bytes at most, unless the rule's prefix is longer than
	// that. [ParseKey] reads it. It must not be kept: the bytes change when the function has
	// returned.
	Key []byte
	// Shadow reports that the limit denies nobody.
	Shadow bool
}
