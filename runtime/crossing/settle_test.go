package crossing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// isSettled reports whether a decision is settled when its call is over.
func (p *process) isSettled(a *asked) bool {
	return a.err == nil && a.call.Meter == nil && (a.call.Settle != not || holdsPermits(p.program, a.uses))
}

// settle settles a decision as its call says.
func (p *process) settle(a *asked) {
	c := a.call
	costs := p.costs(a)
	s := settled{tried: true, start: p.now(), came: p.moment(), end: endless, over: endless, cost: slices.Clone(costs)}
	for i, u := range a.uses {
		if p.program.Rules[u.Rule].Algorithm == runtime.Concurrency {
			s.cost[i] = 0
		}
	}
	a.settled = s
	p.work.Add(1)
	ctx := context.Background()
	if attempt := p.mistake(c.Wrong, costs); attempt != nil {
		a.settled.mistake, a.settled.mistaken = true, attempt(ctx, a.d)
	}
	if a.settled.mistake && a.settled.mistaken == nil {
		a.settled.end = p.now() // it was settled, if in a strange way
	} else if c.Later {
		p.limiter.SettleLater(ctx, a.d, costs...)
		if p.still() && memorized(p.program) {
			a.settled.end = p.now()
		}
	} else {
		a.settled.err = p.limiter.Settle(ctx, a.d, costs...)
		a.settled.end = p.now()
		if c.Wrong == twice {
			a.settled.twice, a.settled.again = true, p.limiter.Settle(ctx, a.d, costs...)
		}
	}
	a.settled.over, a.settled.turn = p.now(), p.work.Add(1)
}

// costs returns what a decision is settled at.
func (p *process) costs(a *asked) (costs []int64) {
	for _, u := range a.uses {
		cost := int64(-1)
		switch a.call.Settle {
		case same:
			cost = u.Cost
		case less:
			cost = u.Cost / 2
		case more:
			cost = 2*u.Cost + 1
		case zero:
			cost = 0
		}
		if u.Cost == 0 {
			cost = -1
		}
		costs = append(costs, cost)
	}
	return costs
}

// mistake returns an attempt to settle in a wrong way, or nil.
func (p *process) mistake(w wrong, costs []int64) func(context.Context, runtime.Decision) error {
	limiter := p.limiter
	if w == foreign && len(p.processes) > 1 {
		limiter = p.processes[(p.number+1)%len(p.processes)].limiter
	} else {
		return nil
	}
	return func(ctx context.Context, d runtime.Decision) error { return limiter.Settle(ctx, d, costs...) }
}

// memorized reports whether decisions are settled in memory, at once.
func memorized(p *program) bool {
	for _, r := range p.Rules {
		if r.Lease > 0 {
			return false
		}
	}
	return true
}

// leave ends the limiters, and looks for what is left of the program: all calls have
// ended and were settled, so in a while every limit is whole.
func (r *running) leave() {
	h := r.history
	complain := func(format string, args ...any) {
		h.left = append(h.left, fmt.Sprintf(format, args...))
	}
	if !memorized(r.program) || !r.still() {
		time.Sleep(h.scope.window / 2) // what is settled later
	}
	for _, p := range r.processes {
		for declared, n := range bridge.LimiterOf(p.limiter).Permits() {
			if n != 0 {
				complain("process %d holds %d permits of %s", p.number, n, declared)
			}
		}
	}
	for _, p := range r.processes {
		if err := p.limiter.Close(); err != nil && len(h.faults) == 0 {
			complain("process %d: close: %v", p.number, err)
		}
	}
	p := r.processes[0]
	for _, u := range h.used() {
		limits := p.limits([]use{u})
		look := func() (runtime.Decision, error) { return p.limiter.Peek(context.Background(), limits...) }
		d, err := look()
		now := p.now() // a limiter that is closed stays with what was in force then
		if slices.ContainsFunc(h.terms(u, min(h.closed, now), now), func(t terms) bool { return t.max == 0 }) {
			continue // nothing is left of what admits nobody
		}
		if err != nil || d.Rule == "" {
			if err != nil && !errors.Is(err, runtime.ErrUnavailable) {
				complain("rule %d key %d: %v", u.Rule, u.Key, err)
			}
			continue
		}
		permits := r.program.Rules[u.Rule].Algorithm == runtime.Concurrency
		if permits && d.Remaining != d.Limit && len(h.faults) == 0 {
			complain("rule %d key %d: %d of %d permits are left when no call runs", u.Rule, u.Key, d.Remaining, d.Limit)
		}
		if calendar := r.program.Rules[u.Rule].Period != rule.NoPeriod; calendar {
			if now := h.clock(p.now() - p.back(p.now())); !h.program.roams(r.program.Rules[u.Rule]) && d.ResetAfter > 0 && !d.Blocked && r.exact() && len(h.jumps) == 0 && !now.Add(d.ResetAfter).Equal(h.edge(r.program.Rules[u.Rule], now)) {
				complain("rule %d key %d: whole at %v, not at the end of the period", u.Rule, u.Key, now.Add(d.ResetAfter).UTC())
			}
			if !r.exact() {
				continue // nobody waits for that
			}
		} else if bound := h.wholeAfter(u); d.ResetAfter > bound && len(h.jumps) == 0 {
			complain("rule %d key %d: whole after %v, which should take %v at most", u.Rule, u.Key, d.ResetAfter, bound)
			continue
		}
		before := d
		time.Sleep(d.ResetAfter)
		if d, err = look(); err == nil && r.program.Rules[u.Rule].Debt == rule.DebtCarry {
			time.Sleep(d.ResetAfter) // in which what was owed is used
			d, err = look()
		}
		whole := d.Limit
		if r.program.Rules[u.Rule].Headroom != 0 {
			whole -= spec.Headroom(r.program.Rules[u.Rule].Headroom, d.Limit, d.Limit)
		}
		if err == nil && d.Remaining < whole && (!permits || len(h.jumps) == 0) { // those of before a jump may count later
			complain("rule %d key %d: %+v, and when all is over %+v", u.Rule, u.Key, before, d)
		}
	}
}

// used returns each key that was used, by each of its rules.
func (h *history) used() (all []use) {
	seen := map[string]bool{}
	for _, a := range h.asked {
		for _, u := range a.uses {
			if name := strconv.Itoa(u.Rule) + "/" + strconv.Itoa(u.Key); !seen[name] && !h.program.uncounted(u) {
				seen[name] = true
				all = append(all, use{Rule: u.Rule, Key: u.Key, Cost: 1})
			}
		}
	}
	return all
}

// wholeAfter returns how long it takes at most until a key is whole that nobody uses.
func (h *history) wholeAfter(u use) time.Duration {
	r := h.program.Rules[u.Rule]
	most := 4 * r.Window // by an override
	bound := most + most/16 + most/7 + 2*r.Lease + r.Block + h.scope.window
	if r.Algorithm == runtime.TokenBucket || r.Algorithm == runtime.LeakyBucket {
		total := int64(0)
		for _, a := range h.asked {
			for i, v := range a.uses {
				if v.Key == u.Key {
					total += max(v.Cost, a.most(i, 0))
				}
			}
		}
		bound = time.Duration(total) * most
	}
	return bound + time.Second
}
