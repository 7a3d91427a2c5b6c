package permit

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"time"

	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// How often permits are renewed in a window, and how soon after a failure.
const (
	renewals   = spec.Renewals
	retries    = 12
	longRetry  = time.Second
	shortRetry = 5 * time.Millisecond
	slack      = 4 // renewed with others are those due within this part of the interval
)

// retry returns the time until something that failed is done again, somewhat at
// random: other processes have failed at the same time.
func (m *permit) retry() time.Duration {
	pause := max(shortRetry, min(longRetry, m.window()/retries))
	return pause*3/4 + rand.N(pause/2)
}

// round renews the permits that are due, and returns those again whose return
// may have been in vain. A permit that is returned meanwhile is returned again
// when the round is over.
func (p *Permits) round() {
	p.mu.Lock()
	if p.closed || p.working {
		p.mu.Unlock()
		return
	}
	p.working = true
	p.rounds.Add(1)
	defer p.rounds.Done()
	start := clock.Now()
	var renewing, leaving [2][]*permit // in the store and in the limiter's own
	enforced := p.isDue(start)
	for _, m := range p.held {
		switch {
		case m.due-m.interval()/slack > start:
		case m.due > start && !enforced && !m.plan.Terms.Shadow: // a shadow limit alone has begun the round
		case m.reserved() && start >= m.over:
			m.due = math.MaxInt64 // its key is gone, as if lost: a renewal would charge the next period
		default:
			m.renewing = true
			renewing[m.store()] = append(renewing[m.store()], m)
		}
	}
	p.leave(&leaving, start, start)
	p.mu.Unlock()

	for i, members := range renewing {
		if len(members) > 0 {
			p.renew(p.Stores[i], members, start)
		}
	}
	p.returnAll(&leaving)

	p.mu.Lock()
	defer p.mu.Unlock()
	p.working, p.next = false, 0
	for _, all := range []map[id]*permit{p.held, p.leaving} {
		next := time.Duration(math.MaxInt64)
		for _, m := range all {
			next = min(next, m.due)
		}
		if next != math.MaxInt64 {
			p.schedule(next)
		}
	}
}

// leave collects what is to be returned again at a time, by store. It forgets what has lapsed by
// now.
func (p *Permits) leave(leaving *[2][]*permit, at, now time.Duration) {
	for id, m := range p.leaving {
		switch {
		case m.due > at:
		case m.until != 0 && now >= m.until:
			delete(p.leaving, id)
		default:
			leaving[m.store()] = append(leaving[m.store()], m)
		}
	}
}

func (p *Permits) returnAll(leaving *[2][]*permit) {
	for i, members := range leaving {
		if len(members) > 0 {
			p.returnAgain(p.Stores[i], members)
		}
	}
}

// isDue reports whether a permit of a limit that enforces is to be renewed at an instant. When
// permits of limits in shadow mode alone are, no other is renewed with them: its calls'
// RetryAfter would change.
func (p *Permits) isDue(at time.Duration) bool {
	for _, m := range p.held {
		if m.due <= at && !m.plan.Terms.Shadow {
			return true
		}
	}
	return false
}

// store returns the place of the permit's store: 1 is the limiter's own.
func (m *permit) store() int {
	if m.local {
		return 1
	}
	return 0
}

// renew renews permits in a round that began at an instant.
func (p *Permits) renew(store terms.Store, members []*permit, start time.Duration) {
	calls, charges := make([]terms.Call, len(members)), make([]terms.Charge, len(members))
	for i, m := range members {
		charges[i] = m.renewal()
		calls[i].Charges = charges[i : i+1]
	}
	failed := p.do(store, func(ctx context.Context, s terms.Store) error { return s.Renew(ctx, calls) })
	last, rule := failed, ""
	now := clock.Now()
	p.mu.Lock()
	for i, m := range members {
		m.renewing = false
		if err := cmp.Or(failed, calls[i].Err); err != nil {
			last, rule = err, m.plan.Name
			m.due, m.doubt = now+m.retry(), start
		} else if m.due = start + m.interval(); charges[i].At == 0 {
			m.due = math.MaxInt64 // it was reset, or its period is over
			m.lapses = max(m.lapses, m.over)
		} else if m.lapses = start + m.window(); m.reserved() && charges[i].At != m.number {
			p.chargedAgain(m, charges[i].At, now)
		}
		if p.leaving[m.id] == m {
			m.due = now // the renewal may have come after the return
		}
	}
	p.mu.Unlock()
	if last != nil {
		p.NotRenewed(rule, private.Hide(last))
	}
}

// chargedAgain notes that a reservation was charged again by a number. A call that is over by
// now has settled the one before, so that this one is to be given back.
func (p *Permits) chargedAgain(m *permit, number int64, now time.Duration) {
	if p.held[m.id] == m {
		m.number = number
		return
	}
	again := *m
	again.at, again.number, again.more = number, number, -m.cost
	again.due, again.until = now, now+m.window()
	p.leaving[again.id] = &again
}

// returnAgain returns permits whose return may have been in vain.
func (p *Permits) returnAgain(store terms.Store, members []*permit) {
	charges := make([]terms.Charge, len(members))
	for i, m := range members {
		charges[i] = m.repeatedReturn()
	}
	err := p.do(store, func(ctx context.Context, s terms.Store) error { return s.Settle(ctx, charges) })
	now := clock.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, m := range members {
		err := cmp.Or(err, charges[i].Err)
		// Nothing is under way any more once the limiter is closed, as far as it can be known.
		if err == nil && (p.closed || m.doubt == 0 || m.reserved() || now >= m.doubt+m.window()) {
			delete(p.leaving, m.id)
		} else {
			m.due = now + m.retry()
		}
		if err != nil {
			p.failed = private.Hide(err)
		} else {
			p.wake(m.key)
		}
	}
}

var errStorePanicked = private.New("the store panicked")

// do has a store do something, whose panics and whose time are bounded.
func (p *Permits) do(store terms.Store, do func(context.Context, terms.Store) error) (err error) {
	ctx, cancel := p.Bound(context.Background())
	defer cancel()
	err = errStorePanicked // unless do returns
	defer p.Contain()
	return do(ctx, store)
}
