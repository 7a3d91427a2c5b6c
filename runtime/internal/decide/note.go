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

// A callNote is memory for the limits that events of a call have.
type callNote struct {
	decided []observe.CallLimit
	settled []observe.SettledLimit
}

var callNotes = sync.Pool{New: func() any { return new(callNote) }}

func (n *callNote) free() {
	for i := range n.decided { // whose memory for a key is used again
		n.decided[i] = observe.CallLimit{Key: n.decided[i].Key[:0], Share: n.decided[i].Share[:0]}
	}
	clear(n.settled)
	n.decided, n.settled = n.decided[:0], n.settled[:0]
	callNotes.Put(n)
}

// add adds a charge that was decided. The key is copied, since it may be on its caller's stack.
func (n *callNote) add(c *Charge, t *terms.Charge, verdict observe.Verdict) {
	i, p := len(n.decided), c.DecidingPlan(t)
	if i == cap(n.decided) {
		n.decided = append(n.decided, observe.CallLimit{})
	}
	n.decided = n.decided[:i+1]
	l := &n.decided[i]
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
		n.settled = append(n.settled, l)
	}
	for _, o := range e.Events.Observers {
		report.NotifyWith(e.Events, ctx, o.Settlement, observe.SettlementEvent{Limits: n.settled})
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
