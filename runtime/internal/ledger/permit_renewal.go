package ledger

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"time"

	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// How often permits are renewed in a window, and how soon after a failure.
const (
	renewals     = spec.Renewals
	retries      = 12
	longRetry    = time.Second
	shortRetry   = 5 * time.Millisecond
	renewalSlack = 4 // renewed with others are those due within this part of the interval
)

// retry returns the time until something that failed is done again, somewhat at
// random: other processes have failed at the same time.
func (p *permit) retry() time.Duration {
	pause := max(shortRetry, min(longRetry, p.window()/retries))
	return pause*3/4 + rand.N(pause/2)
}

// round renews the permits that are due, and returns those again whose return
// may have been in vain. A permit that is returned meanwhile is returned again
// when the round is over.
func (p *Permits) round() {
	p.followWindows()
	p.mu.Lock()
	if p.closed || p.roundActive {
		p.mu.Unlock()
		return
	}
	p.roundActive = true
	p.rounds.Add(1)
	defer p.rounds.Done()
	start := clock.Now()
	var renewing, leaving [2][]*permit // in the store and in the limiter's own
	enforced := p.enforcedDue(start)
	for _, m := range p.held {
		switch {
		case m.due-m.interval()/renewalSlack > start:
		case m.due > start && !enforced && !m.plan.Terms.Shadow: // a shadow limit alone has begun the round
		case m.reserved() && start >= m.periodEnd:
			m.due = math.MaxInt64 // its key is gone, as if lost: a renewal would charge the next period
		default:
			m.inRenewal = true
			renewing[storeIndex(m.local)] = append(renewing[storeIndex(m.local)], m)
		}
	}
	p.collectReturns(&leaving, start, start)
	p.mu.Unlock()

	for i, members := range renewing {
		if len(members) > 0 {
			p.renew(p.ledger.Stores[i], members, start)
		}
	}
	p.returnAll(&leaving)

	p.mu.Lock()
	defer p.mu.Unlock()
	p.roundActive, p.alarm.dueTime = false, 0
	for _, all := range []map[permitID]*permit{p.held, p.returns} {
		next := time.Duration(math.MaxInt64)
		for _, m := range all {
			next = min(next, m.due)
		}
		if next != math.MaxInt64 {
			p.schedule(next)
		}
	}
}

// collectReturns collects what is to be returned again at a time, by store. It forgets what has lapsed by
// now.
func (p *Permits) collectReturns(leaving *[2][]*permit, at, now time.Duration) {
	for id, m := range p.returns {
		if m.due > at {
			continue
		}
		if m.retryEnd != 0 && now >= m.retryEnd {
			delete(p.returns, id)
		} else {
			leaving[storeIndex(m.local)] = append(leaving[storeIndex(m.local)], m)
		}
	}
}

func (p *Permits) returnAll(leaving *[2][]*permit) {
	for i, members := range leaving {
		if len(members) > 0 {
			p.repeatReturns(p.ledger.Stores[i], members)
		}
	}
}

// enforcedDue reports whether a permit of a limit that enforces is to be renewed at an instant. When
// permits of limits in shadow mode alone are, no other is renewed with them: its calls'
// RetryAfter would change.
func (p *Permits) enforcedDue(at time.Duration) bool {
	for _, m := range p.held {
		if m.due <= at && !m.plan.Terms.Shadow {
			return true
		}
	}
	return false
}

// renew renews permits in a round that began at an instant.
func (p *Permits) renew(store terms.Store, members []*permit, start time.Duration) {
	calls, charges := make([]terms.Call, len(members)), make([]terms.Charge, len(members))
	p.mu.Lock()
	for i, m := range members {
		charges[i] = m.renewal()
		calls[i].Charges = charges[i : i+1]
	}
	p.mu.Unlock()
	failed := p.execute(store, func(ctx context.Context, s terms.Store) error { return s.Renew(ctx, calls) })
	last, rule := failed, ""
	now := clock.Now()
	p.mu.Lock()
	for i, m := range members {
		m.inRenewal = false
		if err := cmp.Or(failed, calls[i].Err); err != nil {
			last, rule = err, m.plan.Name
			m.due, m.lostRenewal = now+m.retry(), start
		} else if charges[i].At == 0 {
			m.due = math.MaxInt64 // it was reset, or its period is over
			m.lapseTime = max(m.lapseTime, m.periodEnd)
		} else {
			m.due, m.lapseTime = start+m.interval(), start+m.window()
			if m.reserved() && charges[i].At != m.number {
				p.noteRecharge(m, charges[i].At, now)
			}
		}
		if p.returns[m.permitID] == m {
			m.due = now // the renewal may have come after the return
		}
	}
	p.mu.Unlock()
	if last != nil {
		p.ledger.NotRenewed(rule, private.Hide(last))
	}
}

// repeatReturns returns permits whose return may have been in vain.
func (p *Permits) repeatReturns(store terms.Store, members []*permit) {
	charges := make([]terms.Charge, len(members))
	for i, m := range members {
		charges[i] = m.repeatedReturn()
	}
	err := p.execute(store, func(ctx context.Context, s terms.Store) error { return s.Settle(ctx, charges) })
	now := clock.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, m := range members {
		err := cmp.Or(err, charges[i].Err)
		// Nothing is under way any more once the limiter is closed, as far as it can be known.
		if err == nil && (p.closed || m.lostRenewal == 0 || m.reserved() || now >= m.lostRenewal+m.window()) {
			delete(p.returns, m.permitID)
		} else {
			m.due = now + m.retry()
		}
		if err != nil {
			p.returnErr = private.Hide(err)
		} else {
			p.ledger.Lines.Wake([]byte(m.key), m.cost)
		}
	}
}

// execute has a store do something, whose panics and whose time are bounded.
func (p *Permits) execute(store terms.Store, do func(context.Context, terms.Store) error) (err error) {
	ctx, cancel := p.ledger.Bound(context.Background())
	defer cancel()
	err = errStorePanicked // unless do returns
	defer p.ledger.Contain()
	return do(ctx, store)
}

// Leave has the store know that no call of this process waits for permits of a key any more, so that
// others need not wait until it has not asked for long. Nobody needs to hear whether the store has.
func (p *Permits) Leave(by *plan.Plan, key []byte) {
	l := p.ledger
	c := by.Correction(key, 1, 1, 0, 0)
	c.Param = l.Lines.Process
	if l.Returner != nil {
		l.Returner.Return(&c, terms.Unheard{})
	} else if l.InMemory {
		_ = l.Stores[0].Settle(context.Background(), []terms.Charge{c})
	}
}
