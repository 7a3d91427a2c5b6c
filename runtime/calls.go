package runtime

import (
	"context"
	"sync"
	"time"

	"github.com/rategen/rategen/runtime/internal/decide"
	"github.com/rategen/rategen/runtime/internal/ledger"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/observe"
)

// A callNote is memory for the events of a call.
type callNote struct {
	call    observe.CallEvent
	settled observe.SettlementEvent
}

var callNotes = sync.Pool{New: func() any { return new(callNote) }}

func (n *callNote) free() {
	for i := range n.call.Limits { // whose memory for a key is used again
		n.call.Limits[i] = observe.CallLimit{Key: n.call.Limits[i].Key[:0], Share: n.call.Limits[i].Share[:0]}
	}
	clear(n.settled.Limits)
	n.call.Limits, n.settled.Limits = n.call.Limits[:0], n.settled.Limits[:0]
	callNotes.Put(n)
}

// add adds a charge that a plan has decided. The key is copied, since it may be on its caller's stack.
func (n *callNote) add(c *decide.Charge, t *terms.Charge, p *plan.Plan, verdict observe.Verdict) {
	i := len(n.call.Limits)
	if i == cap(n.call.Limits) {
		n.call.Limits = append(n.call.Limits, observe.CallLimit{})
	}
	n.call.Limits = n.call.Limits[:i+1]
	l := &n.call.Limits[i]
	l.Rule, l.Declared, l.Verdict, l.Source = p.Rule, p.Declared, verdict, t.Source
	l.Key, l.Cost, l.Max, l.Wait, l.Charged = append(l.Key[:0], p.Parts(c.Key)...), c.Cost, p.Max, t.Wait, t.At
	l.Zone, l.Anchor = periodOf(p)
	l.Share, l.Weight = append(l.Share[:0], c.Tenant...), c.Weight
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
		l := observe.SettledLimit{Rule: p.Rule, Declared: p.Declared, Key: p.Parts(c.Key), Share: c.Tenant, Weight: c.Weight, Max: p.Max, Charged: c.At, Cost: c.Charged, Settled: c.Charged + c.Cost}
		l.Zone, l.Anchor = periodOf(p)
		n.settled.Limits = append(n.settled.Limits, l)
	}
	for _, o := range e.observers {
		notifyWith(e, ctx, o.Settlement, n.settled)
	}
	n.free()
}
