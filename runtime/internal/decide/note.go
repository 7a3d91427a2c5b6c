package decide

import (
	"context"
	"sync"

	"github.com/rategen/rategen/runtime/internal/ledger"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/report"
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
func (n *callNote) add(c *Charge, t *terms.Charge, p *plan.Plan, verdict observe.Verdict) {
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

// TellSettling tells of what is about to be settled in the store.
func (e *Engine) TellSettling(ctx context.Context, b *ledger.Settlement) {
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
	for _, o := range e.Events.Observers {
		report.NotifyWith(e.Events, ctx, o.Settlement, n.settled)
	}
	n.free()
}

// keyPool holds the bytes of events under way.
var keyPool = sync.Pool{New: func() any { return new([terms.MaxKey]byte) }}

// tellKeys tells the keys of all limits of a decided call that had no room. It copies them, so that
// they may stay on their caller's stack.
func (e *Engine) tellKeys(ctx context.Context, charges []Charge, tries []terms.Charge) {
	for i := range tries {
		p := charges[i].Plan
		parts := p.Parts(charges[i].Key)
		if tries[i].Allowed || parts == nil {
			continue
		}
		text := keyPool.Get().(*[terms.MaxKey]byte)
		ev := observe.KeyRefusedEvent{Rule: p.Name, Key: append(text[:0], parts...), Shadow: p.Terms.Shadow}
		for _, o := range e.Events.Observers {
			report.NotifyWith(e.Events, ctx, o.KeyRefused, ev)
		}
		keyPool.Put(text)
	}
}
