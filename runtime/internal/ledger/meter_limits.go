package ledger

import (
	"context"
	"fmt"
	"slices"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/rule"
)

// A LimitMeter is a [Meter] of the limits of a call.
type LimitMeter struct {
	Meter
	ledger *Ledger
	limits []rule.Limit
	more   TakeMore
}

// A TakeMore charges limits with a context that values are of, each as much as its Want says, in one
// request. It fills in the rest of the Wants. The error is that of [Charger].
type TakeMore func(ctx context.Context, limits []rule.Limit, wants []Want, try bool) error

// Measure begins a meter of the call of a decision that was charged, or of one without limits if k is
// nil. Used is how much of each charge is used: all, below 0 or where it is missing.
func (l *Ledger) Measure(ctx context.Context, m *LimitMeter, k *Kept, used []int64, more TakeMore) {
	m.ledger, m.more = l, more
	m.Charger, m.Ctx, m.Closed = (*limitCharger)(m), ctx, ErrSettled
	if k == nil {
		return
	}
	if k.Flags != nil && !k.Flags.Set(k.Flag) {
		m.Err = ErrSettled
		return
	}
	var keys [rule.MaxLimits]string // without the namespace
	for limit, made, ok := k.Charge(0); ok; limit, made, ok = k.Charge(len(m.limits)) {
		i, advance := len(m.limits), int64(0)
		if made.At != 0 && i < len(used) && used[i] >= 0 && algorithm.RowOf(limit.Rule.Algorithm).Lacks["meter"] == "" {
			advance = max(0, limit.Cost-used[i])
		}
		keys[i] = plan.Start("", limit.Rule) + limit.Key.String()
		if j := slices.Index(keys[:i], keys[i]); j >= 0 {
			m.Err = fmt.Errorf("%w: rules %q and %q of a metered call have the same prefix and key: give them prefixes of their own",
				rule.ErrInvalidLimit, m.limits[j].Rule.Name, limit.Rule.Name)
		}
		m.limits = append(m.limits, limit)
		m.Begin(Metered{Made: made, Lapses: limit.Rule.Reserve > 0}, advance)
	}
}

// limitCharger is what a meter of limits charges by, a [Charger].
type limitCharger LimitMeter

func (m *limitCharger) Most(i int) (most int64, free bool) {
	p, _, _ := m.ledger.Plans.Plan(&m.limits[i])
	if p == nil { // it is switched off
		return 0, false
	}
	if p.Terms.Block == 0 && !p.Queues() {
		most = p.Most
	}
	return most, p.Terms.Shadow
}

// Take takes what is wanted. Of a limit that takes no more at once it takes one part after the
// other, and gives them all back if one of them has no room. A limit that refuses nobody counts all of
// a cost or nothing too, and leaves the others' parts alone.
func (m *limitCharger) Take(wants []Want, try bool) (err error) {
	part, later := m.divide(wants)
	if len(later) == 0 {
		return m.takePart(wants, try)
	}
	var made []Settled
	for {
		if err = m.takePart(part, try); err == nil {
			for i := range part {
				w := &wants[slices.IndexFunc(wants, func(w Want) bool { return w.Limit == part[i].Limit })]
				cost := w.Cost // all of it is used, so that nobody settles a part of it
				w.Metered, w.Room = part[i].Metered, part[i].Room
				if w.At != 0 {
					made = append(made, Settled{Limit: w.Limit, Metered: w.Metered})
				}
				w.Cost = cost
				if w.free && w.At == 0 {
					made = m.undo(made, w.Limit)
					later = slices.DeleteFunc(later, func(l Want) bool { return l.Limit == w.Limit })
				}
			}
			if len(later) == 0 {
				return nil
			}
			err = m.Ctx.Err()
		}
		if err != nil {
			m.SettleNow(made)
			return err
		}
		part, later = m.divide(later)
	}
}

// undo gives back what was made of a limit, and returns the rest.
func (m *limitCharger) undo(made []Settled, limit int) (rest []Settled) {
	var back []Settled
	for _, s := range made {
		if s.Limit == limit {
			back = append(back, s)
		} else {
			rest = append(rest, s)
		}
	}
	m.SettleNow(back)
	return rest
}

// divide returns what can be taken at once of what is wanted, and what is left of that.
func (m *limitCharger) divide(wants []Want) (part, later []Want) {
	for i := range wants {
		w := &wants[i]
		limit := m.limits[w.Limit].WithCost(w.Cost) // a max that follows the load is no less
		p, _, _ := m.ledger.Plans.Plan(&limit)
		if p == nil || w.Cost <= p.Most || p.Unsatisfiable(w.Cost) {
			continue
		}
		if part == nil {
			part = slices.Clone(wants)
		}
		part[i].Cost = p.Most
		rest := *w
		rest.Cost -= p.Most
		later = append(later, rest)
	}
	if part == nil {
		part = wants
	}
	return part, later
}

// takePart charges what can be at once.
func (m *limitCharger) takePart(wants []Want, try bool) error {
	limits := make([]rule.Limit, len(wants))
	for i := range wants {
		limits[i] = m.limits[wants[i].Limit].WithCost(wants[i].Cost)
	}
	return m.more(m.Ctx, limits, wants, try)
}

func (m *limitCharger) SettleNow(settled []Settled) {
	m.settle(settled, func(b *Settlement) {
		m.ledger.SettleNow(m.Ctx, b)
		m.ledger.Report(m.Ctx, b)
	})
}

func (m *limitCharger) SettleLater(settled []Settled) {
	m.settle(settled, func(b *Settlement) { m.ledger.SettleLater(m.Ctx, b) })
}

// settle settles what this process has charged, and what the store has, each by itself.
func (m *limitCharger) settle(settled []Settled, settle func(*Settlement)) {
	for _, local := range [...]bool{false, true} {
		b := NewSettlement()
		b.Local = local
		for _, s := range settled {
			if s.Local != local {
				continue
			}
			limit := m.limits[s.Limit].WithCost(s.Cost)
			if _, err := m.ledger.correct(b, &limit, s.Made, s.Final); err != nil {
				m.ledger.Unsettled(m.Ctx, limit.Rule, err)
			}
		}
		settle(b)
		b.Free()
	}
}
