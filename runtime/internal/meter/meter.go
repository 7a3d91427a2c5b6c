// Package meter charges a call while it runs: it says how much to take in advance of what the
// call will cost, what to give back and when, and cuts what a reader reads to what is paid.
//
// It is handed a [Charger], which takes and settles as for any other call. It promises that
// all limits are charged for a use or none, that no more is used than was taken, and that
// what was taken and not used is given back. It never reads a rule.
package meter

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
)

// ErrNoRoom is the error of a try for which a limit has no room.
var ErrNoRoom = errors.New("no room")

// A Charge is the newest one of a limit, of which not all may be used.
type Charge struct {
	// Cost is how many units were to be charged, Made how many were, At and Mark when. At is 0
	// if nothing was.
	Cost, Made, At, Mark int64
	// Local says that this process alone has made it, Lapses that it comes back unless it is
	// settled, also at its cost.
	Local, Lapses bool
}

// A Want is what is to be charged to one limit of a call.
type Want struct {
	// Limit is which one.
	Limit int
	// Charge has the units to charge as its cost. Take sets the rest.
	Charge
	// Room is how much the limit has left then, also if it had too little. Take sets it.
	Room int64

	lack int64 // how much of the cost is used at once
	free bool  // the limit refuses nobody, and does not count what it has no room for
}

// A Charger charges the limits of a call.
type Charger interface {
	// Most returns how much may be charged at once to a limit. At 0 it is what is used and
	// no more. A free limit refuses nobody.
	Most(limit int, units int64) (most int64, free bool)
	// Take charges all, or none and returns why. If try is true and there is no room, it
	// does so at once with ErrNoRoom, and nobody is told of it.
	Take(wants []Want, try bool) error
	// Settle settles charges at costs. A cost below 0 leaves a charge as it is.
	Settle(charges []Charge, costs []int64, when Moment)
}

// A Moment says when charges are settled.
type Moment int

const (
	// Soon is for a call that goes on.
	Soon Moment = iota
	// Now is before it is charged more.
	Now
	// End is soon, and the call is over.
	End
)

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

// An account is one limit.
type account struct {
	Advance
	charge Charge
	uses   bool // the charge is for what Charge uses, and not the caller's to settle
}

// lapses reports whether the charge has to be settled to last.
func (a *account) lapses() bool { return a.charge.Lapses && a.charge.At != 0 }

// lasts reports whether the charge is to last, and has to be settled for that.
func (a *account) lasts() bool { return a.uses && a.lapses() }

// Begin adds a limit of which a charge was made when the call began, with so much in
// advance. What the limit had left then is not told: only of a lone limit is it known, and
// what a call takes must not depend on whether a limit in shadow mode is beside.
func (m *Meter) Begin(charge Charge, advance int64) {
	a := account{charge: charge, uses: advance > 0}
	if advance > 0 {
		a.Add(advance, 0, clock.Now())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.accounts = append(m.accounts, a)
	m.watch(clock.Now())
}

// Left returns how much of a limit can be charged without asking the source.
func (m *Meter) Left(limit int) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if limit < 0 || limit >= len(m.accounts) {
		return 0
	}
	return m.accounts[limit].left
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
	switch {
	case m.Err != nil:
		return m.Err
	case m.closed:
		return m.Closed
	case m.Ctx.Err() != nil:
		return m.Ctx.Err()
	}
	costs = costs[:min(len(costs), len(m.accounts))]
	now := clock.Now()
	for i := range m.accounts {
		if m.accounts[i].Stale(now) {
			m.giveBack(func(a *account) bool { return a.Stale(now) })
			break
		}
	}
	for i, cost := range costs {
		if cost < 0 || cost > m.accounts[i].left {
			if err := m.take(costs, now, try); err != nil {
				return err
			}
			break
		}
	}
	local := false
	for i, cost := range costs {
		a := &m.accounts[i]
		a.left -= max(0, cost)
		local = local || a.charge.Local && a.left > 0
	}
	if local { // it costs nothing to ask this process again
		m.giveBack(func(a *account) bool { return a.charge.Local })
	}
	return nil
}

// take takes what costs lack, and more if it may.
func (m *Meter) take(costs []int64, now time.Duration, try bool) error {
	var wants []Want
	larger, lapses := false, false
	for i, cost := range costs {
		a := &m.accounts[i]
		if cost >= 0 && cost <= a.left {
			continue
		}
		w := Want{Limit: i, lack: cost - a.left}
		var most int64
		most, w.free = m.Charger.Most(i, w.lack)
		w.Cost = a.Portion(w.lack, most, w.free, now)
		if cost < 0 {
			w.lack, w.Cost = 0, cost // which the source refuses
		}
		larger, lapses = larger || w.Cost > w.lack, lapses || a.lapses()
		wants = append(wants, w)
	}
	err := m.Charger.Take(wants, try || larger || lapses)
	if err == ErrNoRoom && (larger || lapses) {
		if lapses {
			m.settleFirst(wants)
		}
		for i := range wants {
			w := &wants[i]
			w.Charge = Charge{Cost: w.lack}
			m.accounts[w.Limit].Refuse(w.Room)
		}
		err = m.Charger.Take(wants, try)
	}
	if err != nil {
		if err != ErrNoRoom && m.Ctx.Err() == nil {
			m.Err = err
		}
		return err
	}
	m.settleUsed(wants)
	for i := range wants {
		w := &wants[i]
		a := &m.accounts[w.Limit]
		if w.At == 0 && !w.free {
			w.Cost = w.lack // who has not paid asks again
		}
		a.charge, a.uses = w.Charge, true
		a.Add(w.Cost, w.Room, now)
	}
	m.watch(now)
	return nil
}

// settleUsed settles charges that the next ones replace, if they would lapse: all of them is
// used.
func (m *Meter) settleUsed(wants []Want) {
	lapses := func(w Want) bool { return m.accounts[w.Limit].lapses() }
	if slices.ContainsFunc(wants, lapses) {
		m.settle(Soon, func(i int, a *account) int64 {
			if slices.ContainsFunc(wants, func(w Want) bool { return w.Limit == i && lapses(w) }) {
				return a.charge.Cost
			}
			return -1
		})
	}
}

// settleFirst settles the charges of what there is no room for, so that the store does not
// expect them to lapse: it would tell the call to come back then.
func (m *Meter) settleFirst(wants []Want) {
	m.settle(Now, func(i int, a *account) int64 {
		for j := range wants {
			if w := &wants[j]; w.Limit == i && a.lapses() {
				left := a.Drop()
				w.lack += left
				return a.charge.Cost - left
			}
		}
		return -1
	})
}

// watch has what nobody uses given back in time, and what was used settled, if it would lapse.
func (m *Meter) watch(now time.Duration) {
	next := time.Duration(math.MaxInt64)
	for i := range m.accounts {
		if a := &m.accounts[i]; a.left > 0 || a.lasts() {
			next = min(next, a.Due())
		}
	}
	if next == math.MaxInt64 {
		return
	}
	if m.idle.Load() == nil {
		m.idle.Store(time.AfterFunc(math.MaxInt64, m.expire)) // which needs it
	}
	m.idle.Load().Reset(max(0, next-now))
}

func (m *Meter) expire() {
	if !m.mu.TryLock() { // a Charge is under way, and may wait for its turn
		m.idle.Load().Reset(Keep)
		return
	}
	if m.closed {
		m.mu.Unlock()
		return
	}
	now := clock.Now()
	charges, costs := m.leave(unused(func(a *account) bool { return now >= a.Due() }))
	m.watch(now)
	m.expiring.Add(1)
	m.mu.Unlock()
	defer m.expiring.Done()
	m.Charger.Settle(charges, costs, Soon)
}

// unused returns at which costs charges of some accounts are settled: what they have used.
func unused(of func(*account) bool) func(int, *account) int64 {
	return func(_ int, a *account) int64 {
		if (a.left > 0 || a.lasts()) && of(a) {
			return a.charge.Cost - a.Drop()
		}
		return -1
	}
}

// giveBack gives back what some accounts have in advance. What they have used lasts.
func (m *Meter) giveBack(of func(*account) bool) {
	m.settle(Soon, unused(of))
}

// settle settles the newest charges, of which each is settled once.
func (m *Meter) settle(when Moment, cost func(i int, a *account) int64) {
	charges, costs := m.leave(cost)
	m.Charger.Settle(charges, costs, when)
}

// leave returns the newest charges and what they are to be settled at. It is called once for
// each that is.
func (m *Meter) leave(cost func(i int, a *account) int64) (charges []Charge, costs []int64) {
	charges, costs = make([]Charge, len(m.accounts)), make([]int64, len(m.accounts))
	for i := range m.accounts {
		a := &m.accounts[i]
		charges[i] = a.charge
		if costs[i] = cost(i, a); costs[i] >= 0 {
			a.charge.At = 0
		}
	}
	return charges, costs
}

// Close gives back what was taken in advance. Costs are what charges are settled at that are not
// for what Charge uses, and were not settled when there was no room for more. Only the first Close has an effect.
func (m *Meter) Close(costs []int64) {
	defer m.expiring.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return
	}
	m.closed = true
	if idle := m.idle.Load(); idle != nil {
		idle.Stop()
	}
	m.settle(End, func(i int, a *account) int64 {
		switch left := a.Drop(); {
		case left > 0:
			return a.charge.Cost - left
		case i < len(costs) && !a.uses:
			return costs[i]
		}
		return -1
	})
}
