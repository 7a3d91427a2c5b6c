package ledger

import (
	"math"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
)

// An account is one limit.
type account struct {
	Advance
	charge Metered
	isUsed bool // the charge is for what Charge uses, and not the caller's to settle
}

// lapses reports whether the charge has to be settled to last.
func (a *account) lapses() bool { return a.charge.Lapses && a.charge.At != 0 }

// mustSettle reports whether the charge is to last, and has to be settled for that.
func (a *account) mustSettle() bool { return a.isUsed && a.lapses() }

// isOpen reports whether something is in advance, or what was used has to be settled.
func (a *account) isOpen() bool { return a.unusedUnits > 0 || a.mustSettle() }

// settle returns the charge as settled at a cost. It is called once for each charge.
func (a *account) settle(limit int, cost int64) Settled {
	s := Settled{limit, a.charge, cost}
	a.charge.At = 0
	return s
}

// dueAccounts returns a filter for accounts whose unused units have waited for too long at an instant.
func dueAccounts(now time.Duration) func(*account) bool {
	return func(a *account) bool { return now >= a.Due() }
}

func isLocal(a *account) bool { return a.charge.Local }

// giveBack gives back what some accounts have in advance. What they have used lasts.
func (m *Meter) giveBack(of func(*account) bool) { m.settleLater(m.takeSettled(unusedCosts(of))) }

// unusedCosts says at which costs charges of some accounts are settled: what they have used.
func unusedCosts(of func(*account) bool) func(int, *account) (int64, bool) {
	return func(_ int, a *account) (int64, bool) {
		if !a.isOpen() || !of(a) {
			return 0, false
		}
		return a.charge.Cost - a.Drop(), true
	}
}

// takeSettled returns the newest charges that are to be settled, and at which cost.
func (m *Meter) takeSettled(cost func(int, *account) (int64, bool)) (settled []Settled) {
	for i := range m.accounts {
		a := &m.accounts[i]
		if n, ok := cost(i, a); ok && a.charge.At != 0 {
			settled = append(settled, a.settle(i, n))
		}
	}
	return settled
}

func (m *Meter) settleLater(settled []Settled) {
	if len(settled) > 0 {
		m.Charger.SettleLater(settled)
	}
}

// watch has what nobody uses given back in time, and what was used settled, if it would lapse.
func (m *Meter) watch(now time.Duration) {
	next := time.Duration(math.MaxInt64)
	for i := range m.accounts {
		if a := &m.accounts[i]; a.isOpen() {
			next = min(next, a.Due())
		}
	}
	if next == math.MaxInt64 {
		return
	}
	if m.idle.Load() == nil {
		m.idle.Store(time.AfterFunc(math.MaxInt64, m.expire)) // which needs it
	}
	m.idle.Load().Reset(next - now)
}

func (m *Meter) expire() {
	if !m.mu.TryLock() { // a Charge is under way, and may wait for its turn
		m.idle.Load().Reset(AdvanceTime)
		return
	}
	if m.closed {
		m.mu.Unlock()
		return
	}
	now := clock.Now()
	settled := m.takeSettled(unusedCosts(dueAccounts(now)))
	m.watch(now)
	m.expiring.Add(1)
	m.mu.Unlock()
	defer m.expiring.Done()
	m.settleLater(settled)
}
