package observe

import (
	"fmt"
	"time"

	"github.com/rategen/rategen/runtime/rule"
)

// A DecisionEvent is the decision about one limit of a call. Its Blocked, Limit, RetryAfter and
// ResetAfter are those of a runtime.Decision about this limit alone.
type DecisionEvent struct {
	Rule    string
	Verdict Verdict
	Blocked bool
	// Source is who decided this limit. It is [rule.SourceNone] if the limit was not looked up,
	// because another one refused the call already.
	Source rule.Source
	// Mode, Algorithm and Window are those of the rule with its overrides. The Window of a rule
	// with a Period is how long the present one is, by the clock of this process.
	Mode        rule.Mode
	Algorithm   rule.Algorithm
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
	// all others of which the same part could not, see [rule.InvalidShare].
	InvalidKey bool
	// Outgoing is [rule.Rule.Outgoing].
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
	// VerdictRefused: the limit had no room.
	VerdictRefused
	// VerdictShadowRefused: the call went on, and a limit in [rule.ModeShadow] or [rule.ModeSoft] mode had
	// no room for it.
	VerdictShadowRefused
	// VerdictNotCharged: another limit of the call had no room. This one had, or was not looked
	// up, as is one in [rule.ModeShadow] mode.
	VerdictNotCharged
	// VerdictUnavailable: nothing could decide, and a rule of the call fails closed.
	VerdictUnavailable
)

// String returns the verdict in lower case.
func (v Verdict) String() string {
	names := [...]string{"admitted", "refused", "shadow_refused", "not_charged", "unavailable"}
	if int(v) < len(names) {
		return names[v]
	}
	return fmt.Sprintf("Verdict(%d)", uint8(v))
}

// A ThresholdEvent is a key that has used a share of a rule with a Period. The store tells it
// with its answer to the call, the settlement or the renewal that takes the count over the
// share: once in a period, over all processes whose limiters have a Threshold function,
// whatever is refunded, leased or called with another Zone or Anchor later. A higher max has
// its shares told anew, and a max that follows the load has not. runtime.Limiter.Reset begins anew.
//
// With a [rule.Rule.Lease] what processes hold counts as used, so a share is told up to a grant
// early. Nothing is told of a max that was lowered to less than what is used, until something is
// counted again, nor of what the store has not decided. An event is lost if the process ends
// just then, or the store's answer is lost. Rules without a Period have none: what is used of
// them rises and falls all the time.
type ThresholdEvent struct {
	Rule string
	// Key is as in a [KeyRefusedEvent], and as private, and may be kept.
	Key string
	// Percent is 80 or 100.
	Percent int
	// Used is how much of Limit, the max that held, was used. It is above Limit if calls have
	// turned out to cost more.
	Used, Limit int64
	// ResetAfter is the time until the period ends.
	ResetAfter time.Duration
	// Shadow reports that the limit refuses nobody.
	Shadow bool
}

// A FailureEvent is a limit that the store did not decide, or whose key could not be built: the
// class of the error, and the policy that decided instead. A limit in [rule.ModeShadow] mode refuses
// nobody, whatever the policy.
type FailureEvent struct {
	Rule   string
	Class  ErrorClass
	Policy rule.FailurePolicy
	// Settling reports that runtime.Limiter.SettleLater could not settle a decision: its cost stays as
	// it was reserved. Holding reports that the results of a call ask to hold calls back, see
	// wrapper.HoldOff, and that the store does not. There is no Policy then.
	Settling, Holding bool
	// Err is why.
	Err error
}

// A WaitEvent is a call that begins to wait for its turn, see [rule.Rule.Wait],
// or whose waiting is over. The two events of a call have the same Rule: the one that, when the
// call begins to wait, keeps it for longest.
type WaitEvent struct {
	Rule string
	// Waiting is true when the call begins to wait, and false when that is over.
	Waiting bool
	// Waited is how long it has waited in all, trips to the store included, when it is over.
	Waited time.Duration
	// Admitted reports that the call then went on. Otherwise it was refused, not decided, or its
	// context ended.
	Admitted bool
}

// A HiddenEvent is a call that a rule has refused, and whose client was told of something else,
// see [RefusedCall].
type HiddenEvent struct {
	Rule string
	// Served reports that this was a success: the program had something in place of what was
	// refused.
	Served bool
}

// A PeerRefusedEvent is a call that went out and that its peer has refused. The rule counts
// calls to the peer.
type PeerRefusedEvent struct{ Rule string }

// A HoldEvent is the end of a runtime.Limiter.Hold or runtime.Limiter.Release, by this process, of some key
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
	// Err is why others are not in force, or nil. If it is runtime.ErrInvalidOverrides, they were
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
// observer, recorder, log handler, override source, scaler, kill switch, refused (see
// runtime.WithRefusalError), redis client or store.
type PanicEvent struct{ In string }

// A KeyRefusedEvent is a key whose limit had no room for a call, or that is blocked or held. There is none
// of calls that a failure policy refuses.
type KeyRefusedEvent struct {
	Rule string
	// Key is what [rule.Key.String] returns or, for parts that are too long for a Redis key, the
	// hash that stands there. It has 200 bytes at most, unless the rule's prefix is longer than
	// that. [rule.ParseKey] reads it. It must not be kept: the bytes change when the function has
	// returned.
	Key []byte
	// Shadow reports that the limit refuses nobody.
	Shadow bool
}
