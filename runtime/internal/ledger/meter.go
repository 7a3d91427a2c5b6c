package ledger

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
)

// ErrNoRoom is the error of a try for which a limit has no room.
var ErrNoRoom = errors.New("no room")

// A Metered is the newest charge one of a limit, of which not all may be used.
type Metered struct {
	Made
	// Lapses says that it comes back unless it is settled, also at its cost.
	Lapses bool
}

// A Want is what is to be charged to one limit of a call.
type Want struct {
	// Limit is which one.
	Limit int
	// Metered has the units to charge as its cost. Take sets the rest.
	Metered
	// Room is how much the limit has left then. Take sets it.
	Room int64

	missing int64 // how much of the cost is used at once
	free    bool  // the limit refuses nobody, and does not count what it has no room for
}

// A Settled is the charge of a limit that is settled.
type Settled struct {
	Limit int
	Metered
	// Final is the cost that becomes the charge, which is left as it is below 0.
	Final int64
}

// A Charger charges the limits of a call.
type Charger interface {
	// Most returns how much may be charged at once to a limit. At 0 it is what is used and
	// no more. A free limit refuses nobody.
	Most(limit int) (most int64, free bool)
	// Take charges all, or none and returns why. If try is true and there is no room, it
	// does so at once with ErrNoRoom, and nobody is told of it.
	Take(wants []Want, try bool) error
	// SettleNow settles charges before it returns, and SettleLater soon.
	SettleNow(settled []Settled)
	SettleLater(settled []Settled)
}

// A Meter charges a call that runs. Its fields are set before it is used. It is safe for
// concurrent use.
type Meter struct {
	Charger Charger
	Ctx     context.Context // the call's
	Closed  error           // what Charge returns once the meter is closed
	Err     error           // why nothing more can be charged, or nil

	mu       sync.Mutex
	accounts []account
	idle     atomic.Pointer[time.Timer] // gives back what waits for too long; nil: nothing has so far
	expiring sync.WaitGroup             // what it gives back, while the meter can be used
	closed   bool
}

// Begin adds a limit of which a charge was made when the call began, with so much in
// advance. What the limit had left then is not told: only of a lone limit is it known, and
// what a call takes must not depend on whether a limit in shadow mode is beside.
func (m *Meter) Begin(charge Metered, advance int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, a := clock.Now(), account{charge: charge, isUsed: advance > 0}
	a.Add(advance, 0, now)
	m.accounts = append(m.accounts, a)
	m.watch(now)
}

// Left returns how much of a limit can be charged without asking the source.
func (m *Meter) Left(limit int) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if limit < 0 || limit >= len(m.accounts) {
		return 0
	}
	return m.accounts[limit].unusedUnits
}

// Ended returns why nothing more can be charged, or nil.
func (m *Meter) Ended() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.Err
}

// Charge charges costs to the limits, or none and returns why. That is its error from then
// on. But if try is true it may be ErrNoRoom, and the meter goes on.
func (m *Meter) Charge(costs []int64, try bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.Err != nil {
		return m.Err
	}
	if m.closed {
		return m.Closed
	}
	if m.Ctx.Err() != nil {
		return m.Ctx.Err()
	}
	costs = costs[:min(len(costs), len(m.accounts))]
	now := clock.Now()
	m.giveBack(dueAccounts(now))
	if wants := m.wants(costs, now); len(wants) > 0 {
		if err := m.take(wants, now, try); err != nil {
			return err
		}
	}
	for i, cost := range costs {
		m.accounts[i].unusedUnits -= max(0, cost)
	}
	m.giveBack(isLocal) // it costs nothing to ask this process again
	return nil
}

// wants returns what costs lack, and more if it may be taken in advance.
func (m *Meter) wants(costs []int64, now time.Duration) (wants []Want) {
	for i, cost := range costs {
		a := &m.accounts[i]
		if cost >= 0 && cost <= a.unusedUnits {
			continue
		}
		w := Want{Limit: i}
		if cost < 0 {
			w.Cost = cost // which the source refuses
		} else {
			w.missing = cost - a.unusedUnits
			var most int64
			most, w.free = m.Charger.Most(i)
			w.Cost = a.Portion(w.missing, most, w.free, now)
		}
		wants = append(wants, w)
	}
	return wants
}

// take takes what is wanted, or what is lacking where there is no room for more.
func (m *Meter) take(wants []Want, now time.Duration, try bool) error {
	again := false
	for i := range wants {
		w := &wants[i]
		again = again || w.Cost > w.missing || m.accounts[w.Limit].lapses()
	}
	err := m.Charger.Take(wants, try || again)
	if err == ErrNoRoom && again {
		m.reduceWants(wants)
		err = m.Charger.Take(wants, try)
	}
	if err != nil {
		if err != ErrNoRoom && m.Ctx.Err() == nil {
			m.Err = err
		}
		return err
	}
	var used []Settled
	for i := range wants {
		w := &wants[i]
		a := &m.accounts[w.Limit]
		if w.Cost < 0 { // nothing is limited at present
			continue
		}
		if a.lapses() { // the new charge replaces it, and all of it is used
			used = append(used, Settled{w.Limit, a.charge, a.charge.Cost})
		}
		if w.At == 0 && !w.free {
			w.Cost = w.missing // who has not paid asks again
		}
		a.charge, a.isUsed = w.Metered, true
		a.Add(w.Cost, w.Room, now)
	}
	m.settleLater(used)
	m.watch(now)
	return nil
}

// reduceWants has what is lacking taken, and nothing in advance. It settles charges that would
// lapse of what there is no room for: the store would tell the call to come back then.
func (m *Meter) reduceWants(wants []Want) {
	var settled []Settled
	for i := range wants {
		w := &wants[i]
		a := &m.accounts[w.Limit]
		if a.lapses() {
			left := a.Drop()
			w.missing += left
			settled = append(settled, a.settle(w.Limit, a.charge.Cost-left))
		}
		w.Cost = w.missing
		a.Refuse()
	}
	if len(settled) > 0 {
		m.Charger.SettleNow(settled)
	}
}

// Close gives back what was taken in advance. Costs are what charges are settled at that are not
// for what Charge uses, and were not settled when there was no room for more. Only the first Close
// has an effect.
func (m *Meter) Close(costs []int64) {
	defer m.expiring.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	if idle := m.idle.Load(); idle != nil {
		idle.Stop()
	}
	m.settleLater(m.takeSettled(func(i int, a *account) (int64, bool) {
		left := a.Drop()
		if left > 0 {
			return a.charge.Cost - left, true
		}
		if i < len(costs) && !a.isUsed {
			return costs[i], true
		}
		return -1, true
	}))
}
