// Package ledger keeps what this process was charged and has not settled: the units of leases,
// the permits and reservations of calls that run, and charges that are to become what their
// calls turned out to cost.
//
// It is handed charges that a store has made. It promises that a charge is settled once at most;
// that permits are renewed until they are given back, and that a return is repeated until the
// store has certainly executed it; and that no call is admitted by units of a lease which the
// store has not charged, nor after their time. It never refuses a call, and never has one wait
// for a store, but for a call that asks for a settlement's errors.
package ledger

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rule"
)

// A Config is what a [Ledger] works with.
type Config struct {
	// Plans say what limits mean now.
	Plans *plan.Plans
	// Stores have made the charges: the limiter's, and the one by which this process alone
	// counts.
	Stores [2]terms.Store
	// Returner is the limiter's store if it settles charges that nobody waits for. It may be
	// nil.
	Returner terms.Returner
	// InMemory says that the limiter's store is in this process: nothing is settled later.
	InMemory bool
	// Leases says that the limiter's store can charge units ahead.
	Leases bool
	// Bound returns a context with the values of another, which does not end with that one
	// and bounds how long a store may take.
	Bound func(context.Context) (context.Context, context.CancelFunc)
	// Contain, deferred, ends a panic of a store.
	Contain func()
	// Settling is told of charges that are about to be settled. It may be nil.
	Settling func(context.Context, *Settlement)
	// Unsettled is told of a charge by a rule that was not settled, and that nobody waits for.
	Unsettled func(ctx context.Context, r *rule.Rule, err error)
	// AllRefunded is told of a rule that gives all charges back.
	AllRefunded func(rule string)
	// NotRenewed is told of a rule whose permits were not renewed.
	NotRenewed func(rule string, err error)
}

// A Ledger is that of a limiter. It is safe for concurrent use.
type Ledger struct {
	Config
	// Permits are those that calls hold, and reservations. Comments on permits hold for both,
	// unless they say otherwise.
	Permits Permits
	// Lines are of calls that wait for room.
	Lines Lines
	// Leases are nil if there are none.
	Leases *Leases

	queue queue
}

// New returns a ledger, which is to be closed.
func New(c Config) *Ledger {
	l := &Ledger{Config: c}
	l.queue.work.Do, l.Lines.Most, l.Lines.Process = l.settleQueued, MaxTurns, firstProcess+processes.Add(1)
	l.Permits.ledger, l.Permits.alarm.action = l, l.Permits.round
	if c.Leases {
		l.Leases = newLeases(l)
	}
	return l
}

// Ledgers of one program have numbers in a row, so that what depends on their order can be repeated.
var (
	firstProcess = rand.Int64N(1 << 48)
	processes    atomic.Int64
)

// Close ends all leases, and waits for their requests under way for a while; then for what is to
// be settled, and for permits that may not be returned, for twice as long. Later charges are
// settled by their callers. The error is non-nil if and only if something is left.
func (l *Ledger) Close(within time.Duration) error {
	l.Leases.close(within)
	end := clock.Now() + 2*within
	return errors.Join(l.queue.close(2*within), l.Permits.close(end-clock.Now()))
}

// storeIndex returns the place of a store: 1 is that of this process alone.
func storeIndex(local bool) int {
	if local {
		return 1
	}
	return 0
}

var errStorePanicked = private.New("the store panicked")

// prepare tells Settling of a settlement, and puts units of leases back into their leases. Other charges
// stay, and so do those that cost more than was charged, or whose grant is over.
func (l *Ledger) prepare(ctx context.Context, b *Settlement) {
	if l.Settling != nil {
		l.Settling(ctx, b)
	}
	if l.Leases != nil && !b.Local {
		b.Filter(func(p *plan.Plan, c *terms.Charge) bool {
			if p.Lease == 0 || c.Cost >= 0 || !l.Leases.Put(c, -c.Cost) {
				return true
			}
			l.wake(c)
			return false
		})
	}
}

// SettleNow settles charges. Each that was not settled has an error.
func (l *Ledger) SettleNow(ctx context.Context, b *Settlement) {
	l.prepare(ctx, b)
	if len(b.Charges) > 0 {
		l.settleNow(ctx, b)
	}
}

// settleNow is SettleNow for charges that no lease takes back.
func (l *Ledger) settleNow(ctx context.Context, b *Settlement) {
	b.permits = b.permits[:0]
	for i := range b.Charges {
		var w withdrawal
		if c := &b.Charges[i]; c.Lapses() {
			w = l.Permits.withdraw(b.Plans[i], c, b.Local)
		}
		b.permits = append(b.permits, w)
	}
	l.settle(ctx, b.Local, b.Charges)
	for i, w := range b.permits {
		if w != (withdrawal{}) {
			l.Permits.recordReturn(w, b.Charges[i].Err)
		}
		if b.Charges[i].Err == nil {
			l.wake(&b.Charges[i])
		}
	}
}

// wake has calls of this process ask that wait for room which a settled charge gives back. Calls that ask meanwhile
// learn of permits by their number.
func (l *Ledger) wake(c *terms.Charge) {
	if c.Terms.Is(algorithm.Lends) && l.Lines.waiting.Load() == 0 {
		return
	}
	if c.Cost < 0 {
		l.Lines.Wake(c.Key, -c.Cost)
	}
}

// settle has a store settle charges, and sets the error of each.
func (l *Ledger) settle(ctx context.Context, local bool, charges []terms.Charge) {
	ctx, cancel := l.Bound(ctx)
	defer cancel()
	err := l.Stores[storeIndex(local)].Settle(ctx, charges)
	for i := range charges {
		c := &charges[i]
		if err != nil {
			c.Err = private.Hide(err)
		} else if c.Err != nil {
			c.Err = private.Hide(c.Err)
		}
	}
}

// Report tells Unsettled of charges that were not settled.
func (l *Ledger) Report(ctx context.Context, b *Settlement) {
	for i := range b.Charges {
		if err := b.Charges[i].Err; err != nil {
			l.Unsettled(ctx, b.Plans[i].Rule, err)
		}
	}
}

// An alarm calls a function at an instant. Its owner locks it.
type alarm struct {
	action  func()
	timer   *time.Timer
	dueTime time.Duration // the instant for which timer is set; 0: it is not
}

// set has the action called at an instant, unless it is to be called before.
func (a *alarm) set(due time.Duration) {
	if a.dueTime != 0 && a.dueTime <= due {
		return
	}
	a.dueTime = due
	wait := max(0, due-clock.Now())
	if a.timer == nil {
		a.timer = time.AfterFunc(wait, a.action)
	} else {
		a.timer.Reset(wait)
	}
}

// stop has nothing called any more.
func (a *alarm) stop() {
	if a.timer != nil {
		a.timer.Stop()
	}
}
