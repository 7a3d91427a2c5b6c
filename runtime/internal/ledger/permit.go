package ledger

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rule"
)

// maxNames is how many names of rules without permits are remembered.
const maxNames = 10_000

// Permits are the permits of a limiter. They are renewed while they are held. A return is
// repeated until the store has certainly executed it. A timer does both, and is set only
// while there is something to do.
type Permits struct {
	ledger *Ledger

	mu          sync.Mutex
	held        map[permitID]*permit
	returns     map[permitID]*permit // returned, perhaps in vain
	inFlight    map[string]int64     // how many are held, by the name of their rule
	ofKey       map[string]int64     // how many the store counts, by key, where calls may wait
	alarm       alarm
	roundActive bool // a round is under way
	closed      bool
	rounds      sync.WaitGroup
	returnErr   error // of the last return that the store did not execute
}

// A permitID tells the permits of one charge from all others.
type permitID struct {
	key        string
	chargeTime int64
	local      bool // this process alone counts them
}

// A permit is what one charge holds: as many permits as it costs.
type permit struct {
	permitID
	plan        *plan.Plan
	cost        int64
	due         time.Duration // the instant at which it is renewed, or returned again
	inRenewal   bool          // it is being renewed now
	renewalOpen bool          // a renewal was under way when the return was sent
	lostRenewal time.Duration // the instant of a renewal without an answer, which may still happen
	retryEnd    time.Duration // when it is given up to return it again

	number     int64         // of a reservation: what the store knows it by, chargeTime unless it was charged again
	correction int64         // of a reservation that is settled: by how much
	lapseTime  time.Duration // of a reservation: the instant until which it is known to last
	counted    int64         // of a reservation: the window, in microseconds, by which its period counts now
	periodEnd  time.Duration // of a reservation: the instant at which its period is over
}

func (p *permit) window() time.Duration { return p.plan.Terms.Lasts() }

// reserved reports whether a permit is a reservation: what a call that runs has been charged of a window or a period.
func (p *permit) reserved() bool { return p.plan.Terms.Reserve > 0 }

// renewal returns the charge by which the permit is renewed.
func (p *permit) renewal() (c terms.Charge) {
	p.plan.Charge(&c, []byte(p.key), p.cost)
	c.At = p.number
	if p.reserved() {
		p.setWindow(&c)
	}
	return c
}

// returnCharge returns the charge by which the permit is given back, or the reservation settled. It is
// handed the key.
func (p *permit) returnCharge(key []byte) terms.Charge {
	if !p.reserved() {
		return p.plan.Correction(key, p.cost, p.cost, p.chargeTime, 0)
	}
	mark := int64(0)
	if p.lapseTime >= p.periodEnd {
		mark = terms.Lasted
	}
	c := p.plan.Correction(key, p.cost, -p.correction, p.number, mark)
	if p.reserved() {
		p.setWindow(&c)
	}
	return c
}

// repeatedReturn is returnCharge for a return that the store may have executed before.
func (p *permit) repeatedReturn() terms.Charge {
	c := p.returnCharge([]byte(p.key))
	if p.reserved() {
		c.Mark = terms.Again
	}
	return c
}

// awaited reports whether calls of this process may wait for it that the store counts.
func (p *permit) awaited() bool { return p.plan.Wait > 0 && !p.local && !p.reserved() }

// Count returns how many permits calls hold of a key whose other calls may wait.
func (p *Permits) Count(key []byte) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ofKey[string(key)]
}

// Claim returns what Count does for a call that is about to ask for so many. A store in this process
// decides each call by itself: they then count as held, which Claim reports, until Release.
func (p *Permits) Claim(key []byte, cost int64) (held int64, claimed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	held = p.ofKey[string(key)]
	if p.ledger.InMemory {
		p.add(string(key), cost)
	}
	return held, p.ledger.InMemory
}

// Release undoes a claim: the call was refused, or its permits are recorded.
func (p *Permits) Release(key []byte, cost int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.add(string(key), -cost)
}

// add counts so many permits of a key more.
func (p *Permits) add(key string, n int64) {
	if p.ofKey == nil {
		p.ofKey = map[string]int64{}
	}
	if n += p.ofKey[key]; n == 0 {
		delete(p.ofKey, key)
	} else {
		p.ofKey[key] = n
	}
}

// InFlight returns how many permits are held, by the name of the rule.
func (p *Permits) InFlight() map[string]int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.inFlight)
}

// HeldPermits are those of one key in the store that calls of this process hold.
type HeldPermits struct {
	Plan    *plan.Plan
	Key     string
	Permits int64
	Since   int64 // the time of the store at which the first of them was taken
}

// Oldest returns what calls hold of the n keys that they have held for longest.
func (p *Permits) Oldest(n int) []HeldPermits {
	p.mu.Lock()
	byKey := make(map[string]HeldPermits)
	for _, m := range p.held {
		if m.local || m.reserved() {
			continue
		}
		of, known := byKey[m.key]
		if !known {
			of = HeldPermits{m.plan, m.key, 0, m.number}
		}
		of.Permits, of.Since = of.Permits+m.cost, min(of.Since, m.number)
		byKey[m.key] = of
	}
	p.mu.Unlock()
	all := slices.SortedFunc(maps.Values(byKey), func(a, b HeldPermits) int { return cmp.Compare(a.Since, b.Since) })
	return all[:min(n, len(all))]
}

// Record records the permits of a call by a plan, which asked the store at an instant. It keeps a
// copy of the key.
func (p *Permits) Record(by *plan.Plan, c *terms.Charge, asked time.Duration) {
	local := c.Source == rule.SourceLocal
	m := &permit{permitID: permitID{string(c.Key), c.At, local}, plan: by, cost: min(c.Cost, c.Max), number: c.At}
	now := clock.Now()
	m.due, m.lapseTime, m.counted, m.periodEnd = now+m.interval(), asked+m.window(), c.Window, now+c.ResetAfter
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held == nil {
		p.held, p.returns, p.inFlight = map[permitID]*permit{}, map[permitID]*permit{}, map[string]int64{}
	}
	p.held[m.permitID] = m
	if !m.reserved() {
		p.inFlight[by.Name] += m.cost
	}
	if m.awaited() {
		p.add(m.key, m.cost)
	}
	p.schedule(m.due)
}

func (p *permit) interval() time.Duration { return p.window() / renewals }

// schedule makes a round begin at an instant, or before.
func (p *Permits) schedule(due time.Duration) {
	if !p.closed && !p.roundActive {
		p.alarm.set(due)
	}
}

// A withdrawal is a permit on its way back.
type withdrawal struct{ *permit }

// withdraw ends the renewal of the permits of a charge that is about to be settled, which then
// is as it was made: an override may have changed the limit, or the process's share of it,
// meanwhile. The charge must be one that lapses.
func (p *Permits) withdraw(by *plan.Plan, c *terms.Charge, local bool) withdrawal {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.held[permitID{string(c.Key), c.At, local}] // without a copy of the key
	if m == nil {                                     // they were reset since
		return withdrawal{&permit{permitID: permitID{string(c.Key), c.At, local}, plan: by, cost: c.Charged, number: c.At,
			correction: c.Cost, counted: c.Window}}
	}
	delete(p.held, m.permitID)
	if !m.reserved() {
		p.inFlight[m.plan.Name] -= m.cost
	}
	if m.awaited() {
		p.add(m.key, -m.cost)
	}
	if p.inFlight[m.plan.Name] == 0 && len(p.inFlight) > maxNames {
		delete(p.inFlight, m.plan.Name)
	}
	if m.reserved() {
		m.follow(by.Terms.Window)
	}
	m.renewalOpen, m.correction = m.inRenewal, c.Charged+c.Cost-m.cost
	*c = m.returnCharge(c.Key)
	return withdrawal{m}
}

// recordReturn records the result of a return. A return is repeated if it had no answer, or if a
// renewal may have overtaken it.
func (p *Permits) recordReturn(w withdrawal, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m, now := w.permit, clock.Now()
	// A later renewal may charge a reservation again: that charge lapses, or is given back by itself.
	if !p.closed && p.returns != nil && (err != nil || (m.renewalOpen || m.lostRenewal != 0) && !m.reserved()) {
		p.returns[m.permitID] = m
		m.due, m.retryEnd = now+m.retry(), now+m.window()
		if err == nil && !m.inRenewal {
			m.due = now
		}
		p.schedule(m.due)
	}
}

// close ends renewals and waits for those under way. Then it returns again what may have been
// returned in vain. The error is non-nil if that is not certain within a time.
func (p *Permits) close(within time.Duration) error {
	p.mu.Lock()
	p.closed = true
	p.alarm.stop()
	p.mu.Unlock()
	p.rounds.Wait()
	end := clock.Now() + within
	for tries := 0; ; tries++ {
		now := clock.Now()
		var leaving [2][]*permit
		p.mu.Lock()
		p.collectReturns(&leaving, math.MaxInt64, now)
		p.mu.Unlock()
		if len(leaving[0])+len(leaving[1]) == 0 {
			return nil
		}
		if tries > 0 && now >= end {
			return fmt.Errorf("some permits may not be returned, and count until they lapse: %w", p.returnErr)
		}
		if tries > 0 {
			time.Sleep(shortRetry)
		}
		p.returnAll(&leaving)
	}
}
