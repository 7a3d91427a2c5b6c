// Package permit keeps what calls of a process hold while they run, and has calls wait
// for it in lines.
//
// It is handed charges that a store has made, and those that are about to be given back.
// It promises that permits are renewed until they are given back, and that a return of
// which it is not certain is made again. It never decides a call: a call in a line asks
// its store when its turn has come.
package permit

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// maxNames is how many names of rules without permits are remembered.
const maxNames = 10_000

// Permits are those of a limiter. They are renewed while they are held, and returned
// again as long as it is not certain that the store has them back. The goroutine is that
// of a timer, which is set only while there is something to do.
type Permits struct {
	// Stores have made the charges: the limiter's, and the one by which this process
	// alone counts.
	Stores [2]terms.Store
	// Bound returns a context that bounds how long a store may take.
	Bound func(context.Context) (context.Context, context.CancelFunc)
	// Panicked is told of a panic of a store.
	Panicked func(value any)
	// NotRenewed is told of a rule whose permits were not renewed.
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
}

// window returns for how long the permit lasts.
func (m *permit) window() time.Duration { return terms.Micros(m.plan.Terms.Window) }

// renewal returns the charge by which the permit is renewed.
func (m *permit) renewal() (c terms.Charge) {
	m.plan.Charge(&c, []byte(m.key), m.cost)
	c.At = m.at
	return c
}

// back returns the charge by which the permit is given back.
func (m *permit) back() terms.Charge {
	return m.plan.Units([]byte(m.key), m.cost, m.cost, m.at, 0)
}

// InFlight returns how many permits are held, by the name of the rule.
func (p *Permits) InFlight() map[string]int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.inFlight)
}

// Hold notes that a call by a plan has got permits. It keeps a copy of the key.
func (p *Permits) Hold(by *plan.Plan, c *terms.Charge) {
	local := c.Source == terms.ByLocal
	m := &permit{id: id{string(c.Key), c.At, local}, plan: by, cost: min(c.Cost, c.Max)}
	m.due = clock.Now() + m.interval()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held == nil {
		p.held, p.leaving, p.inFlight = map[id]*permit{}, map[id]*permit{}, map[string]int64{}
	}
	p.held[m.id] = m
	p.inFlight[by.Name] += m.cost
	p.schedule(m.due)
}

// A Withdrawal is a permit on its way back.
type Withdrawal struct {
	*permit
	charge int // by which it is returned
}

// Withdraw ends the renewal of the permits among charges that are about to be
// settled, which then are as they were made: an override may have changed the limit,
// or the process's share of it, meanwhile.
func (p *Permits) Withdraw(charges []terms.Charge, plans []*plan.Plan, local bool) (back []Withdrawal) {
	for i := range charges {
		c := &charges[i]
		if c.Algorithm != terms.Permits {
			continue
		}
		id := id{string(c.Key), c.At, local}
		p.mu.Lock()
		m := p.held[id]
		if m != nil {
			delete(p.held, id)
			if p.inFlight[m.plan.Name] -= m.cost; p.inFlight[m.plan.Name] == 0 && len(p.inFlight) > maxNames {
				delete(p.inFlight, m.plan.Name)
			}
			m.crossed = m.renewing
			*c = m.back()
		} else { // they were reset since
			m = &permit{id: id, plan: plans[i], cost: c.Charged}
		}
		p.mu.Unlock()
		back = append(back, Withdrawal{m, i})
	}
	return back
}

// Returned notes what became of permits on their way back. If the store has them back one
// waiting call of each key looks whether they are enough. A return that may have been in
// vain is made again: one that had no answer, and one that a renewal may have overtaken.
func (p *Permits) Returned(back []Withdrawal, charges []terms.Charge) {
	if len(back) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := clock.Now()
	for _, w := range back {
		m, err := w.permit, charges[w.charge].Err
		if !p.closed && p.leaving != nil && (err != nil || m.crossed || m.doubt != 0) {
			p.leaving[m.id] = m
			m.due, m.until = now+m.retry(), now+m.window()
			if err == nil && !m.renewing {
				m.due = now
			}
			p.schedule(m.due)
		}
		if err == nil {
			p.wake(m.key)
		}
	}
}

// Close ends renewals and waits for those under way.
func (p *Permits) Close() {
	p.mu.Lock()
	p.closed = true
	if p.timer != nil {
		p.timer.Stop()
	}
	clear(p.leaving)
	p.mu.Unlock()
	p.rounds.Wait()
}
