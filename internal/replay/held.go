package replay

import (
	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/internal/record"
	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime/rawstore"
	"github.com/rategen/rategen/runtime/rule"
)

// held is a charge that may be settled.
type held struct {
	request rawstore.Request
	key     heldKey
	max     int64 // as recorded
	next    *held // with an equal key
	began   int64
	late    int64 // how much later it was made than recorded
	lapses  int64
	ends    int64 // of a reservation: its period
	settled bool
}

// keep keeps the charges of an admitted call that may be settled, or lapse.
func (sim *simulation) keep(ev *record.Event, asked [rule.MaxLimits]int, late int64) {
	for k := range sim.requests {
		a := &sim.requests[k]
		l := &ev.Limits[asked[k]]
		t, _ := sim.termsOf(l.Rule, l.Max)
		if a.At == 0 || !t.keeps {
			continue
		}
		if len(sim.held) >= maxHeld {
			sim.full = true
			continue
		}
		h := &held{request: *a, key: heldKey{t.group, l.Caller, l.Share, l.Charged}, max: l.Max, began: sim.decider.Now, late: late}
		h.request.Parts = append([]byte(nil), a.Parts...)
		if life := t.Lasts(); life > 0 {
			h.lapses, h.ends = sim.decider.Now+life, sim.decider.Now+a.ResetAfter.Microseconds()
			sim.plan(sim.decider.Now+life/spec.Renewals, task{renews: h})
		}
		if l.Charged == 0 { // it was refused when it was recorded, so nobody knows for how long it would have run
			if algorithm.RowOf(t.rule.Algorithm).Is(algorithm.Lends) {
				sim.plan(sim.decider.Now+sim.hold(l.Rule), task{ends: h})
				sim.run.result.assumedHolds++
				sim.run.result.rule(l.Rule).About = true
			} else if sim == sim.run.simulations[1] && sim.run.settled[sim.names.Rules[l.Rule].Declared.Name] {
				sim.run.result.unsettled++
			}
			continue
		}
		if e := sim.early[h.key]; len(e) > 0 {
			sim.early[h.key] = e[1:]
			sim.plan(sim.decider.Now+max(0, e[0].at-ev.Time), task{ends: h, cost: e[0].settled})
			continue
		}
		h.next = sim.held[h.key]
		sim.held[h.key] = h
	}
}

// hold returns how long permits of a rule of the record were held.
func (sim *simulation) hold(rule uint32) int64 {
	if m := sim.holds[sim.names.Rules[rule].Declared]; m != nil {
		return m.sum / m.n
	}
	return 0
}

// settle settles the charges of a settlement, each as much later as it was made.
func (sim *simulation) settle(ev *record.Event) error {
	for i := range ev.Limits {
		l := &ev.Limits[i]
		t, err := sim.termsOf(l.Rule, l.Max)
		if err != nil {
			return err
		}
		if !t.on {
			continue
		}
		h := sim.take(heldKey{t.group, l.Caller, l.Share, l.Charged}, l)
		if h == nil { // the call waits or was refused here, or was made before the record begins
			k := heldKey{t.group, l.Caller, l.Share, l.Charged}
			if sim.waiting > 0 && len(sim.early) < maxHeld {
				sim.early[k] = append(sim.early[k], ending{ev.Time, l.Settled})
			} else if sim.waiting > 0 {
				sim.full = true
			}
			continue
		}
		h.request.Terms = t.Terms // by the rule that holds now
		if algorithm.RowOf(t.rule.Algorithm).Is(algorithm.Lends) {
			d := sim.names.Rules[l.Rule].Declared
			if sim.holds[d] == nil {
				sim.holds[d] = new(mean)
			}
			sim.holds[d].sum, sim.holds[d].n = sim.holds[d].sum+max(0, sim.decider.Now-h.began+h.late), sim.holds[d].n+1
		}
		if h.late > 0 {
			sim.plan(sim.decider.Now+h.late, task{ends: h, cost: l.Settled})
			continue
		}
		sim.end(h, l.Settled)
	}
	return nil
}

// take removes the charge that a settlement is of, and returns it. Of several that were made on a
// key in one moment that is one with the cost and, if that has not changed since, the max of the
// settlement. If none has its cost it is of several at once, which become one.
func (sim *simulation) take(key heldKey, l *record.Limit) *held {
	var of *held
	for h := sim.held[key]; h != nil; h = h.next {
		if h.request.Cost == l.Cost && (of == nil || h.max == l.Max) {
			of = h
		}
	}
	if of != nil {
		sim.remove(of)
		return of
	}
	if of = sim.held[key]; of == nil {
		return nil
	}
	sim.remove(of)
	for h := of.next; h != nil && of.request.Cost < l.Cost; h = h.next {
		of.request.Cost, h.settled = of.request.Cost+h.request.Cost, true
		sim.remove(h)
	}
	return of
}

// remove removes a charge from those that may be settled.
func (sim *simulation) remove(of *held) {
	first := sim.held[of.key]
	if first != of {
		for first.next != of {
			first = first.next
		}
		first.next = of.next
		return
	}
	if of.next == nil {
		delete(sim.held, of.key)
		return
	}
	sim.held[of.key] = of.next
}

// end settles a charge at a cost.
func (sim *simulation) end(h *held, settled int64) {
	if !h.settled {
		h.settled = true
		sim.decider.Settle(&h.request, h.request.Cost, settled, h.request.Reserved() && h.lapses >= h.ends)
	}
}

// renew renews a charge that lapses, and again later.
func (sim *simulation) renew(h *held) {
	if h.settled || h.request.Reserved() && sim.decider.Now >= h.ends {
		return
	}
	if !sim.decider.Renew(&h.request) {
		h.lapses = max(h.lapses, h.ends)
		return
	}
	life := h.request.Lasts()
	h.lapses = sim.decider.Now + life
	sim.plan(sim.decider.Now+life/spec.Renewals, task{renews: h})
}
