package runtime

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// permits are what calls of a limiter hold of [Concurrency] limits. They are
// renewed while they are held, and returned again as long as it is not certain
// that the store has them back. Its goroutine is that of a timer, which is set
// only while there is something to do.
type permits struct {
	limiter *Limiter

	mu       sync.Mutex
	held     map[permitID]*permit
	leaving  map[permitID]*permit // returned, perhaps in vain
	inFlight map[string]int64     // how many are held, by the name of their rule
	timer    *time.Timer
	next     time.Duration // the instant for which timer is set; 0: it is not
	working  bool          // a round is under way
	closed   bool
	rounds   sync.WaitGroup
	failed   throttle // of log lines

	lines   map[string][]*line // of calls that wait, by key
	waiting atomic.Int64       // how many they are
}

// A permitID tells the permits of one charge from all others.
type permitID struct {
	key   string
	at    int64
	local bool // in the limiter's own store
}

// A permit is what one charge holds: as many permits as it costs.
type permit struct {
	permitID
	rule     *Rule
	max      int64
	cost     int64
	due      time.Duration // the instant at which it is renewed, or returned again
	renewing bool          // it is being renewed now
	crossed  bool          // it was when its return was sent
	doubt    time.Duration // the instant of a renewal without an answer, which may still happen
	until    time.Duration // when it is given up to return it again
}

// charge returns the permit as a store sees it.
func (m *permit) charge() Charge {
	return Charge{Rule: m.rule, Key: []byte(m.key), Max: m.max, Cost: m.cost, Result: Result{At: m.at}}
}

// InFlight returns how many permits of [Concurrency] limits the calls of this
// process hold, by the name of the rule. A rule whose calls have all ended stays,
// at 0, unless there are more than 10,000 names.
func (l *Limiter) InFlight() map[string]int64 {
	if l == nil {
		l = withoutStore
	}
	l.permits.mu.Lock()
	defer l.permits.mu.Unlock()
	return maps.Clone(l.permits.inFlight)
}

// holdAll notes the permits among charges that were made.
func (p *permits) holdAll(charges []Charge, local bool) {
	for i := range charges {
		if c := &charges[i]; c.Rule.Algorithm == Concurrency && c.At != 0 {
			p.hold(c.Rule, c.Key, c.Max, min(c.Cost, c.Max), c.At, local)
		}
	}
}

// hold notes that a call has got a permit. It keeps none of the arguments but
// the rule.
func (p *permits) hold(rule *Rule, key []byte, max, cost, at int64, local bool) {
	m := &permit{permitID: permitID{string(key), at, local}, rule: rule, max: max, cost: cost}
	m.due = instant() + m.interval()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held == nil {
		p.held, p.leaving, p.inFlight = map[permitID]*permit{}, map[permitID]*permit{}, map[string]int64{}
	}
	p.held[m.permitID] = m
	p.inFlight[rule.Name] += cost
	p.schedule(m.due)
}

// A withdrawal is a permit on its way back.
type withdrawal struct {
	*permit
	charge int // by which it is returned
}

// withdraw ends the renewal of the permits among charges that are about to be
// settled, which then are as they were made: an override may have changed the limit,
// or the process's share of it, meanwhile.
func (p *permits) withdraw(charges []Charge, local bool) (back []withdrawal) {
	for i := range charges {
		c := &charges[i]
		if c.Rule.Algorithm != Concurrency {
			continue
		}
		id := permitID{string(c.Key), c.At, local}
		p.mu.Lock()
		m := p.held[id]
		if m != nil {
			delete(p.held, id)
			if p.inFlight[m.rule.Name] -= m.cost; p.inFlight[m.rule.Name] == 0 && len(p.inFlight) > maxKnown {
				delete(p.inFlight, m.rule.Name)
			}
			m.crossed = m.renewing
			c.Rule, c.Max, c.Cost = m.rule, m.max, m.cost
		} else { // they were reset since
			m = &permit{permitID: id, rule: c.Rule, max: c.Max, cost: c.Cost}
		}
		p.mu.Unlock()
		back = append(back, withdrawal{m, i})
	}
	return back
}

// returned notes what became of permits on their way back, of whose charges failed
// returns the errors. If the store has them back one waiting call of each key looks
// whether they are enough. A return that may have been in vain is made again: one
// that had no answer, and one that a renewal may have overtaken.
func (p *permits) returned(back []withdrawal, failed func(charge int) error) {
	if len(back) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := instant()
	for _, w := range back {
		m, err := w.permit, failed(w.charge)
		if !p.closed && p.leaving != nil && (err != nil || m.crossed || m.doubt != 0) {
			p.leaving[m.permitID] = m
			m.due, m.until = now+m.retry(), now+m.rule.Window
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

// close ends renewals and waits for those under way.
func (p *permits) close() {
	p.mu.Lock()
	p.closed = true
	if p.timer != nil {
		p.timer.Stop()
	}
	clear(p.leaving)
	p.mu.Unlock()
	p.rounds.Wait()
}
