package runtime

import (
	"context"
	"sync"
	"time"

	"github.com/rategen/rategen/runtime/internal/decide"
	"github.com/rategen/rategen/runtime/internal/ledger"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// A CallEvent is a call that was decided, with each of its limits that was. It is for recordings,
// see package raterecord: it names its caller by the keys, which are private.
type CallEvent struct {
	// Limits must not be kept: they are those of another call when the function has returned.
	Limits []CallLimit
	// Waited is how long the call had waited for its turn before its last try, see [Rule.Wait].
	Waited time.Duration
	// Latency is that of each [DecisionEvent] of the call.
	Latency time.Duration
}

// A CallLimit is what was asked about one limit of a call, and what was decided.
type CallLimit struct {
	// Rule is the rule with its overrides, and Declared the rule without.
	Rule, Declared *Rule
	// Key is as in a [KeyDeniedEvent].
	Key []byte
	// Zone and Anchor are those of [Limit.WithPeriod]; the Zone is empty of other limits.
	Zone   string
	Anchor int
	// Verdict, Source, Cost and Max are those of the [DecisionEvent].
	Verdict   Verdict
	Source    Source
	Cost, Max int64
	// Wait is for how long the call could still wait when it was decided.
	Wait time.Duration
	// Charged tells the charges of a key apart: in microseconds since 1970, when the charge
	// counts from by the clock of the store, or about that. It is 0 if nothing was charged.
	Charged int64
}

// A SettlementEvent is decisions that are about to be settled, by [Limiter.Settle], by
// [Limiter.Refund] or by a meter. It is for recordings.
type SettlementEvent struct {
	// Limits must not be kept.
	Limits []SettledLimit
}

// A SettledLimit is what becomes of the charge of a [CallLimit] with the same Key and Charged.
type SettledLimit struct {
	// Rule and Max are with the overrides that hold now, Declared, Zone and Anchor as of the call.
	Rule, Declared *Rule
	Key            []byte
	Zone           string
	Anchor         int
	Max            int64
	// Charged is that of the call.
	Charged int64
	// Cost is what was charged, and Settled what it becomes.
	Cost, Settled int64
}

// A callNote is memory for the events of a call.
type callNote struct {
	call    CallEvent
	settled SettlementEvent
}

var callNotes = sync.Pool{New: func() any { return new(callNote) }}

func (n *callNote) free() {
	for i := range n.call.Limits { // whose memory for a key is used again
		n.call.Limits[i] = CallLimit{Key: n.call.Limits[i].Key[:0]}
	}
	clear(n.settled.Limits)
	n.call.Limits, n.settled.Limits = n.call.Limits[:0], n.settled.Limits[:0]
	callNotes.Put(n)
}

// add adds a charge that a plan has decided. The key is copied, since it may be on its caller's stack.
func (n *callNote) add(c *decide.Charge, t *terms.Charge, p *plan.Plan, verdict Verdict) {
	i := len(n.call.Limits)
	if i == cap(n.call.Limits) {
		n.call.Limits = append(n.call.Limits, CallLimit{})
	}
	n.call.Limits = n.call.Limits[:i+1]
	l := &n.call.Limits[i]
	l.Rule, l.Declared, l.Verdict, l.Source = p.Rule, p.Declared, verdict, t.Source
	l.Key, l.Cost, l.Max, l.Wait, l.Charged = append(l.Key[:0], p.Parts(c.Key)...), c.Cost, p.Max, t.Wait, t.At
	l.Zone, l.Anchor = periodOf(p)
}

func periodOf(p *plan.Plan) (zone string, anchor int) {
	if p.Period == nil {
		return "", 0
	}
	return p.Period.Zone, p.Period.Anchor
}

// reportCall reports a call, and frees the memory of its event.
func (e *events) reportCall(ctx context.Context, n *callNote, waited, latency time.Duration) {
	n.call.Waited, n.call.Latency = waited, latency
	for _, o := range e.observers {
		notifyWith(e, ctx, o.Call, n.call)
	}
	n.free()
}

// reportSettling reports what is about to be settled in the store.
func (e *events) reportSettling(ctx context.Context, b *ledger.Settlement) {
	if b.Local || len(b.Charges) == 0 {
		return
	}
	n := callNotes.Get().(*callNote)
	for i := range b.Charges {
		c, p := &b.Charges[i], b.Plans[i]
		l := SettledLimit{Rule: p.Rule, Declared: p.Declared, Key: p.Parts(c.Key), Max: p.Max, Charged: c.At, Cost: c.Charged, Settled: c.Charged + c.Cost}
		l.Zone, l.Anchor = periodOf(p)
		n.settled.Limits = append(n.settled.Limits, l)
	}
	for _, o := range e.observers {
		notifyWith(e, ctx, o.Settlement, n.settled)
	}
	n.free()
}
