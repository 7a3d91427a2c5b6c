package observe

import (
	"time"

	"github.com/rategen/rategen/runtime/rule"
)

// A CallEvent is a call that was decided, with each of its limits that was. It is for recordings,
// see package raterecord: it names its caller by the keys, which are private.
type CallEvent struct {
	// Limits must not be kept: they are those of another call when the function has returned.
	Limits []CallLimit
	// Waited is how long the call had waited for its turn before its last try, see [rule.Rule.Wait].
	Waited time.Duration
	// Decided is about when that was, by the clock of the process and with a monotonic reading: halfway
	// through the latency of the [DecisionEvent].
	Decided time.Time
}

// A CallLimit is what was asked about one limit of a call, and what was decided.
type CallLimit struct {
	// Rule is the rule with its overrides, and Declared the rule without.
	Rule, Declared *rule.Rule
	// Key is as in a [KeyRefusedEvent].
	Key []byte
	// Share is the share of [rule.Limit.WithShare], as Key is one, and Weight its weight; 0: it has none.
	Share  []byte
	Weight int64
	// Zone and Anchor are those of [rule.Limit.WithPeriod]; the Zone is empty of other limits.
	Zone   string
	Anchor int
	// Verdict, Source, Cost and Max are those of the [DecisionEvent].
	Verdict   Verdict
	Source    rule.Source
	Cost, Max int64
	// Wait is for how long the call could still wait when it was decided.
	Wait time.Duration
	// Charged tells the charges of a key apart: in microseconds since 1970, when the charge
	// counts from by the clock of the store, or about that. It is 0 if nothing was charged.
	Charged int64
}

// A SettlementEvent is decisions that are about to be settled, by runtime.Limiter.Settle, by
// runtime.Limiter.Refund or by a meter. It is for recordings.
type SettlementEvent struct {
	// Limits must not be kept.
	Limits []SettledLimit
}

// A SettledLimit is what becomes of the charge of a [CallLimit] with the same Key, Share and Charged.
type SettledLimit struct {
	// Rule and Max are with the overrides that hold now, Declared, Zone and Anchor as of the call.
	Rule, Declared *rule.Rule
	Key, Share     []byte
	Weight         int64
	Zone           string
	Anchor         int
	Max            int64
	// Charged is that of the call.
	Charged int64
	// Cost is what was charged, and Settled what it becomes.
	Cost, Settled int64
}
