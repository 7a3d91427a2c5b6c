package storetest

import (
	"fmt"
	"time"

	"github.com/rategen/rategen/runtime/rawstore"
	"github.com/rategen/rategen/runtime/rule"
)

// A debtor is a trial of a rule that carries debts, of one key.
type debtor struct {
	*trial
	name string
}

// debtors are those of every rule that carries debts. What they reserve does not lapse.
func (t *trial) debtors() (all []debtor) {
	for _, reserve := range []time.Duration{0, 100 * 24 * time.Hour} {
		for _, keep := range []uint8{0, 3} {
			if !isCalendar(&t.rule) && keep > 0 {
				continue
			}
			t.rule.Debt, t.rule.Reserve, t.rule.Keep = rule.DebtCarry, reserve, keep
			t.rule.Window = 0
			if isCalendar(&t.rule) {
				t.rule.Period, t.rule.Anchor = rule.Month, 1
			} else {
				t.rule.Window = 24 * time.Hour
			}
			copied := *t
			all = append(all, debtor{&copied, fmt.Sprint(reserve, keep, " ")})
		}
	}
	return all
}

// of returns a charge of a cost at a max to a key.
func (d debtor) of(name string, cost, max int64) rawstore.Charge {
	c := d.charge(d.name+name, cost)
	c.Max = max
	return c
}

// use has a call of a cost turn out to cost something else at a max.
func (d debtor) use(name string, cost, settled, max int64) {
	d.Helper()
	c := d.of(name, cost, 10)
	r := d.take(c)[0]
	if !r.Allowed {
		d.Fatalf("%s%s: %d is denied: %+v", d.name, name, cost, r)
	}
	c.Max = max
	d.settle(c, r, settled)
}

// room wants so much room at a max.
func (d debtor) room(name string, max, want int64) {
	d.Helper()
	if r := d.peek(d.of(name, 1, max))[0]; r.Remaining != want || r.Allowed != (want > 0) {
		d.Fatalf("%s%s, max %d: %+v, want %d left", d.name, name, max, r, want)
	}
}

// next lets the window or the period end that a key is in, to the microsecond.
func (d debtor) next(name string) { d.Advance(d.peek(d.of(name, 1, 10))[0].ResetAfter) }

// debtsAreKept wants what was owed to be used in the next period, whatever the max is by then,
// and nothing to be owed where a max was lowered.
func debtsAreKept(t *trial) {
	for _, d := range t.debtors() {
		for first, room := range map[int64]int64{100: 94, 10: 4, 7: 1, 6: 0, 3: 0} {
			name := fmt.Sprint("first at ", first)
			d.use(name, 4, 16, 10)
			for _, max := range []int64{1, 16, 17, 1000} {
				d.room(name, max, max-min(max, 16)) // which changes nothing
			}
			d.next(name)
			d.room(name, first, room)
			if room > 0 {
				d.admit(d.of(name, 1, first), room-1)
			}
			d.room(name, 10, 4-min(1, first/7))
			d.next(name)
			d.room(name, 10, 10) // it was paid
		}

		// Nothing is owed that was used before the max was lowered, however long the key lives.
		d.use("lowered", 1, 9, 10)
		d.room("lowered", 5, 0)
		d.next("lowered")
		d.room("lowered", 5, 5)
		d.room("lowered", 10, 10)
		// But what a call turns out to cost beyond the lower one is.
		d.use("lowered", 8, 9, 10)
		d.use("lowered", 1, 4, 5)
		d.next("lowered")
		d.room("lowered", 10, 7)

		// A higher max leaves room for what a call turns out to cost, and pays no debt.
		d.use("raised", 5, 12, 20)
		d.use("raised also", 5, 12, 10)
		d.admit(d.of("raised also", 1, 20), 7)
		d.next("raised")
		d.room("raised", 10, 10)
		d.room("raised also", 10, 8)

		// A refund of the same period pays the debt.
		c := d.of("paid", 6, 10)
		r := d.admit(c, 4)
		d.use("paid", 1, 12, 10) // 8 are owed
		d.settle(c, r, 1)
		d.next("paid")
		d.room("paid", 10, 7)
		d.settle(c, r, 0) // of a period that is over
		d.room("paid", 10, 7)
		d.use("paid", 1, 1, 10)
		d.settle(c, r, 0)
		d.room("paid", 10, 6)

		// A debt of two calls, and one of a period that has begun with a debt.
		d.use("twice", 5, 9, 10)
		d.use("twice", 1, 5, 10) // 4
		d.next("twice")
		d.room("twice", 10, 6)
		d.use("twice", 6, 8, 10) // 2
		d.next("twice")
		d.room("twice", 10, 8)
		d.Advance(d.peek(d.of("twice", 1, 10))[0].ResetAfter - time.Microsecond)
		d.room("twice", 10, 8)
		d.Advance(time.Microsecond)
		d.room("twice", 10, 10) // a period without calls has paid
	}
}

// debtsOfOtherAnchors wants a debt to be used in the period that comes next, whichever anchor
// and zone that has, and until the end of the one that came next when it was made.
func debtsOfOtherAnchors(t *trial) {
	for _, d := range t.debtors() {
		for _, anchor := range []int{1, 2, 14, 15, 28, 31} {
			for _, zone := range []string{"UTC", "Asia/Kolkata", "America/Lima"} {
				for _, late := range []time.Duration{0, time.Hour, 24 * time.Hour, 20 * 24 * time.Hour} {
					name := fmt.Sprint(anchor, zone, late)
					d.use(name, 4, 16, 10)
					now := d.of(name, 1, 10)
					other := *now.Rule
					other.Anchor, other.Zone = anchor, zone
					later := now
					later.Rule = &other
					if r := d.peek(later)[0]; r.Remaining != 0 {
						d.Fatalf("%s: %+v, want nothing left", name, r)
					}
					ends := end(now.Rule, d.Now())
					due := end(now.Rule, ends)
					over := withCost(later, 5)
					if r := d.deny(over, 0); r.RetryAfter.Microseconds() != due-d.Now() {
						d.Fatalf("%s: %+v, want to retry when the debt is due, in %d µs", name, r, due-d.Now())
					}
					d.advanceTo(ends)
					d.Advance(late)
					if r := d.deny(over, 4); r.RetryAfter.Microseconds() != due-d.Now() {
						d.Fatalf("%s: %+v, want to retry when the debt is due, in %d µs", name, r, due-d.Now())
					}
					d.admit(withCost(later, 3), 1)
					d.advanceTo(end(&other, d.Now()))
					d.admit(withCost(later, 10), 0)
					d.advanceTo(max(end(&other, d.Now()), end(now.Rule, d.Now())))

					// And nobody calls in the period that follows.
					name += " idle"
					d.use(name, 4, 16, 10)
					later.Key = d.of(name, 1, 10).Key
					d.advanceTo(end(now.Rule, end(now.Rule, d.Now())) - 1)
					if r := d.peek(later)[0]; r.Remaining != 4 {
						d.Fatalf("%s: %+v, want the debt until it is due", name, r)
					}
					d.Advance(time.Microsecond)
					if r := d.peek(later)[0]; r.Remaining != 10 {
						d.Fatalf("%s: %+v, want nothing owed", name, r)
					}
				}
			}
		}
	}
}
