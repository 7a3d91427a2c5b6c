// Package permit keeps the permits and reservations that calls of a process hold while they
// run, and has calls wait for permits in lines.
//
// It is handed charges that a store has made, and charges that are about to be given back or
// settled. It promises that permits are renewed until they are given back, and that a return
// is repeated until the store has certainly executed it. Comments on permits hold for
// reservations too, unless they say otherwise. The package never decides a call: a call in a
// line asks its store when its turn has come.
package permit

import (
	"context"
	"fmt"
	"maps"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// maxNames is how many names of rules without permits are remembered.
const maxNames = 10_000

// Permits are the permits of a limiter. They are renewed while they are held. A return is
// repeated until the store has certainly executed it. A timer does both, and is set only
// while there is something to do.
type Permits struct {
	// Stores have made the charges: the limiter's, and the one by which this process
	// alone counts.
	Stores [2]terms.Store
	// Bound returns a context that bounds how long a store may take.
	Bound func(context.Context) (context.Context, context.CancelFunc)
	// Contain, deferred, ends a panic of a store.
	Contain func()
	// NotRenewed is called for a rule whose permits were not renewed.
	NotRenewed func(rule string, err error)

	mu       sync.Mutex
	held     map[id]*permit
	leaving  map[id]*permit   // returned, perhaps in vain
	inFlight map[string]int64 // how many are held, by the name of their rule
	timer    *time.Timer
	next     time.Duration // the instant for which timer is set; 0: it is not
	working  bool          // a round is under way
	closed   bool
	rounds   sync.WaitGroup
	failed   error // of the last return that the store did not execute

	lines   map[string][]*line // of calls that wait, by key
	waiting atomic.Int64       // how many they are
}

// An id tells the permits of one charge from all others.
type id struct {
	key   string
	at    int64
	local bool // this process alone counts them
}

// A permit is what one charge holds: as many permits as it costs.
type permit struct {
	id
	plan     *plan.Plan
	cost     int64
	due      time.Duration // the instant at which it is renewed, or returned again
	renewing bool          // it is being renewed now
	crossed  bool          // it was when its return was sent
	doubt    time.Duration // the instant of a renewal without an answer, which may still happen
	until    time.Duration // when it is given up to return it again

	number int64         // of a reservation: what the store knows it by, at unless it was charged again
	more   int64         // of a reservation that is settled: by how much
	lapses time.Duration // of a reservation: the instant until which it is known to last
	over   time.Duration // of a reservation: the instant at which its period is over
}

// window returns for how long the permit lasts.
func (m *permit) window() time.Duration { return m.plan.Terms.Lasts() }

// reserved reports whether it is a reservation.
func (m *permit) reserved() bool { return m.plan.Terms.Reserve > 0 }

// renewal returns the charge by which the permit is renewed.
func (m *permit) renewal() (c terms.Charge) {
	m.plan.Charge(&c, []byte(m.key), m.cost)
	c.At = m.number
	return c
}

// returnCharge returns the charge by which the permit is given back, or the reservation settled. It is
// handed the key.
func (m *permit) returnCharge(key []byte) terms.Charge {
	if !m.reserved() {
		return m.plan.Units(key, m.cost, m.cost, m.at, 0)
	}
	mark := int64(0)
	if m.lapses >= m.over {
		mark = terms.Lasted
	}
	return m.plan.Units(key, m.cost, -m.more, m.number, mark)
}

// repeatedReturn is returnCharge for a return that the store may have executed before.
func (m *permit) repeatedReturn() terms.Charge {
	c := m.returnCharge([]byte(m.key))
	if m.reserved() {
		c.Mark = terms.Again
	}
	return c
}

// InFlight returns how many permits are held, by the name of the rule.
func (p *Permits) InFlight() map[string]int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.inFlight)
}

// Keep records the permits of a call by a plan, which asked the store at an instant. It keeps a
// copy of the key.
func (p *Permits) Keep(by *plan.Plan, c *terms.Charge, asked time.Duration) {
	local := c.Source == terms.ByLocal
	m := &permit{id: id{string(c.Key), c.At, local}, plan: by, cost: min(c.Cost, c.Max), number: c.At}
	now := clock.Now()
	m.due, m.lapses, m.over = now+m.interval(), asked+m.window(), now+c.ResetAfter
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held == nil {
		p.held, p.leaving, p.inFlight = map[id]*permit{}, map[id]*permit{}, map[string]int64{}
	}
	p.held[m.id] = m
	if !m.reserved() {
		p.inFlight[by.Name] += m.cost
	}
	p.schedule(m.due)
}

// interval returns the time between two renewals of the permit.
func (m *permit) interval() time.Duration { return m.window() / renewals }

// schedule makes a round begin at an instant, or before.
func (p *Permits) schedule(due time.Duration) {
	if p.closed || p.working || p.next != 0 && p.next <= due {
		return
	}
	p.next = due
	wait := max(0, due-clock.Now())
	if p.timer == nil {
		p.timer = time.AfterFunc(wait, p.round)
	} else {
		p.timer.Reset(wait)
	}
}

// A Withdrawal is a permit on its way back.
type Withdrawal struct{ *permit }

// Withdraw ends the renewal of the permits of a charge that is about to be settled, which then
// is as it was made: an override may have changed the limit, or the process's share of it,
// meanwhile. The charge must be one that lapses.
func (p *Permits) Withdraw(by *plan.Plan, c *terms.Charge, local bool) Withdrawal {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.held[id{string(c.Key), c.At, local}] // without a copy of the key
	if m == nil {                               // they were reset since
		return Withdrawal{&permit{id: id{string(c.Key), c.At, local}, plan: by, cost: c.Charged, number: c.At, more: c.Cost}}
	}
	delete(p.held, m.id)
	if !m.reserved() {
		p.inFlight[m.plan.Name] -= m.cost
	}
	if p.inFlight[m.plan.Name] == 0 && len(p.inFlight) > maxNames {
		delete(p.inFlight, m.plan.Name)
	}
	m.crossed, m.more = m.renewing, c.Charged+c.Cost-m.cost
	*c = m.returnCharge(c.Key)
	return Withdrawal{m}
}

// Returned records the result of a return. A return is repeated if it had no answer, or if a
// renewal may have overtaken it. If the store has executed it, the first waiting call of each
// line of the key asks the store, unless asks says that it was to do so with the return.
func (p *Permits) Returned(w Withdrawal, err error, asks bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m, now := w.permit, clock.Now()
	// A later renewal may charge a reservation again: that charge lapses, or is given back by itself.
	if !p.closed && p.leaving != nil && (err != nil || (m.crossed || m.doubt != 0) && !m.reserved()) {
		p.leaving[m.id] = m
		m.due, m.until = now+m.retry(), now+m.window()
		if err == nil && !m.renewing {
			m.due = now
		}
		p.schedule(m.due)
	}
	if err == nil && !asks {
		p.wake(m.key)
	}
}

// wake has the first call of each line of a key ask the store.
func (p *Permits) wake(key string) {
	for _, line := range p.lines[key] {
		line.turns[0].ask = true
		line.turns[0].change()
	}
}

// Close ends renewals and waits for those under way. Then it returns again what may have been
// returned in vain. The error is non-nil if that is not certain within a time.
func (p *Permits) Close(within time.Duration) error {
	p.mu.Lock()
	p.closed = true
	if p.timer != nil {
		p.timer.Stop()
	}
	p.mu.Unlock()
	p.rounds.Wait()
	end := clock.Now() + within
	for tries := 0; ; tries++ {
		now := clock.Now()
		var leaving [2][]*permit
		p.mu.Lock()
		p.leave(&leaving, math.MaxInt64, now)
		p.mu.Unlock()
		switch {
		case len(leaving[0])+len(leaving[1]) == 0:
			return nil
		case tries > 0 && now >= end:
			return fmt.Errorf("some permits may not be returned, and count until they lapse: %w", p.failed)
		case tries > 0:
			time.Sleep(shortRetry)
		}
		p.returnAll(&leaving)
	}
}
