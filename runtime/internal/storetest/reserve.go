package storetest

import (
	"time"

	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rawstore"
	"github.com/rategen/rategen/runtime/rule"
)

// reserving has charges of the trial's rule lapse after 100 ms.
func (t *trial) reserving() { t.rule.Reserve = 100 * time.Millisecond }

// renewed renews a reservation and returns the number by which it is known then.
func (t *trial) renewed(c rawstore.Charge, at int64) int64 {
	t.Helper()
	c.At = at
	calls := []rawstore.Call{callOf(c)}
	if err := rawstore.On(t.Store).Renew(t.Context(), calls); err != nil || calls[0].Err != nil {
		t.Fatalf("renew: %v, %v", err, calls[0].Err)
	}
	return calls[0].Charges[0].At
}

// marked settles a charge by a number, with a mark.
func (t *trial) marked(c rawstore.Charge, at, mark, cost int64) {
	t.Helper()
	t.settle(c, terms.Result{At: at, Mark: mark}, cost)
}

// reservationsOnAnyClock goes through all that may become of a reservation, in so long a time
// that a busy machine is not late.
func reservationsOnAnyClock(t *trial) {
	t.rule.Reserve = 5 * time.Second
	at, charges := map[string]int64{}, map[string]rawstore.Charge{}
	for _, name := range []string{"settled", "lapses", "late", "renewed"} {
		charges[name] = t.charge(name, 3)
		at[name] = t.admit(charges[name], 7).At
	}
	t.marked(charges["settled"], at["settled"], 0, 1)
	t.Advance(3 * time.Second)
	if again := t.renewed(charges["renewed"], at["renewed"]); again != at["renewed"] {
		t.Errorf("renewed as %d, want %d", again, at["renewed"])
	}
	t.Advance(2200 * time.Millisecond)
	t.marked(charges["late"], at["late"], 0, 5)
	for name, left := range map[string]int64{"settled": 9, "lapses": 10, "late": 5, "renewed": 7} {
		t.left(name, left)
	}
	t.marked(charges["renewed"], at["renewed"], 0, 0)
	t.left("renewed", 10)
	if again := t.renewed(charges["lapses"], at["lapses"]); again <= at["lapses"] {
		t.Errorf("charged again as %d, after %d", again, at["lapses"])
	}
	t.left("lapses", 7)
}

// reservationsLapse wants a charge back to the microsecond, unless it was renewed or settled.
func reservationsLapse(t *trial) {
	t.reserving()
	c, d, e := t.charge("k", 3), t.charge("k", 4), t.charge("k", 2)
	first, second, third := t.admit(c, 7), t.admit(d, 3), t.admit(e, 1)
	if first.At == second.At || second.At == third.At {
		t.Fatalf("two of %d, %d and %d are the same", first.At, second.At, third.At)
	}
	t.settle(e, third, 2)
	t.Advance(60 * time.Millisecond)
	if at := t.renewed(c, first.At); at != first.At {
		t.Fatalf("renewed as %d, want %d", at, first.At)
	}
	t.Advance(39_999 * time.Microsecond)
	t.left("k", 1)
	if r := t.deny(t.charge("k", 5), 1); r.RetryAfter != 60*time.Millisecond+time.Microsecond {
		t.Fatalf("%+v, want to retry when the last has lapsed", r)
	}
	t.Advance(time.Microsecond)
	t.left("k", 5)
	t.Advance(59_999 * time.Microsecond)
	t.left("k", 5)
	t.Advance(time.Microsecond)
	t.left("k", 8)
	if r := t.deny(t.charge("k", 9), 8); r.RetryAfter != r.ResetAfter {
		t.Fatalf("%+v, want to retry when the period ends", r)
	}
	t.admit(t.charge("k", 8), 0)
}

// reservationsAreSettled wants what a call cost charged once, whatever became of its
// reservation.
func reservationsAreSettled(t *trial) {
	t.reserving()
	for name, cost := range map[string]int64{"none": 0, "less": 2, "as reserved": 3, "more": 5} {
		c := t.charge(name, 3)
		t.marked(c, t.admit(c, 7).At, 0, cost)
		t.left(name, 10-cost)
		t.Advance(time.Second)
		t.left(name, 10-cost) // and nothing lapses

		late := t.charge("late "+name, 3)
		at := t.admit(late, 7).At
		t.Advance(100 * time.Millisecond)
		t.left("late "+name, 10)
		t.marked(late, at, terms.Again, cost) // perhaps done before
		t.left("late "+name, 10)
		t.marked(late, at, 0, cost)
		t.left("late "+name, 10-cost)

		again := t.charge("again "+name, 3)
		at = t.admit(again, 7).At
		t.marked(again, at, terms.Again, cost)
		t.marked(again, at, terms.Again, cost)
		t.left("again "+name, 10-cost)
	}
}

// reservationsAreChargedAgain renews what has lapsed, or is lost: it counts again, by
// another number, and is settled by that.
func reservationsAreChargedAgain(t *trial) {
	t.reserving()
	c := t.charge("k", 3)
	at := t.admit(c, 7).At
	t.Advance(200 * time.Millisecond)
	t.left("k", 10)
	again := t.renewed(c, at)
	if again <= at {
		t.Fatalf("charged again as %d, which is no later than %d", again, at)
	}
	t.left("k", 7)
	t.marked(c, again, 0, 1)
	t.left("k", 9)

	lost := t.charge("lost", 3)
	again = t.renewed(lost, at)
	t.left("lost", 7)
	t.marked(lost, again, 0, 1)
	t.left("lost", 9)
}

// reservationsAreReset wants nothing of before a reset to come back.
func reservationsAreReset(t *trial) {
	t.rule.Reserve = time.Minute
	c, d := t.charge("k", 3), t.charge("k", 4)
	first, second := t.admit(c, 7), t.admit(d, 3)
	if err := rawstore.On(t.Store).Reset(t.Context(), []rawstore.Charge{c}); err != nil {
		t.Fatal(err)
	}
	t.left("k", 10)
	if at := t.renewed(c, first.At); at != 0 {
		t.Fatalf("renewed as %d after a reset", at)
	}
	t.left("k", 10)
	t.admit(c, 7)
	t.settle(d, second, 1)
	t.left("k", 7)
	t.settle(c, first, 5) // what it cost beyond what it had reserved
	t.left("k", 5)
}

// reservationsOfThePast have counted in their period.
func reservationsOfThePast(t *trial) {
	t.reserving()
	if t.rule.Period != rule.NoPeriod {
		t.rule.Period, t.rule.Anchor = rule.Day, 0
	} else {
		t.rule.Window = time.Hour
	}
	for name, cost := range map[string]int64{"less": 1, "more": 7} {
		c := t.charge(name, 3)
		r := t.admit(c, 7)
		t.Advance(r.ResetAfter - 50*time.Millisecond)
		at := t.renewed(c, r.At) // it has lapsed
		t.Advance(50 * time.Millisecond)
		t.left(name, 10)
		if again := t.renewed(c, at); again != 0 {
			t.Fatalf("renewed as %d after its period", again)
		}
		t.left(name, 10)
		t.marked(c, at, terms.Lasted, cost)
		t.left(name, 10-max(0, cost-3))
		t.marked(c, r.At, 0, cost) // of one that has lapsed there
		t.left(name, max(0, 10-max(0, cost-3)-cost))
	}
}

// debts wants what calls cost beyond the max to go where the rule says.
func debts(t *trial) {
	for _, debt := range []rule.Debt{rule.DebtRefuse, rule.DebtCarry, rule.DebtForgive} {
		for _, reserve := range []time.Duration{0, 100 * time.Millisecond} {
			if !isFixed(&t.rule) && (debt != rule.DebtForgive || reserve > 0) {
				continue
			}
			for _, cost := range []int64{9, 10, 13, 25} {
				t.rule.Debt, t.rule.Reserve = debt, reserve
				t.rule.Window = 0
				if !isCalendar(&t.rule) {
					t.rule.Window = 24 * time.Hour
				} else {
					t.rule.Period, t.rule.Anchor = rule.Day, 0
				}
				name := debt.String() + reserve.String() + time.Duration(cost).String()
				c, other := t.charge(name, 4), t.charge(name, 2)
				r := t.admit(c, 6)
				also := t.admit(other, 4)
				t.settle(c, r, cost)
				t.settle(other, also, 0)
				if debt == rule.DebtForgive {
					cost = min(cost+2, 10) - 2 // what came back makes room
				}
				t.left(name, max(0, 10-cost))
				if !isFixed(&t.rule) {
					continue
				}
				over := max(0, cost-10)
				if over > 0 {
					t.deny(t.charge(name, 1), 0)
				}
				for n := int64(1); over > 0 && n <= 10; n++ {
					want := t.peek(t.charge(name, n))[0].ResetAfter
					if debt == rule.DebtCarry && n > 10-over {
						want += 24 * time.Hour // there is no room in the next period either
					}
					if r := t.deny(t.charge(name, n), 0); r.RetryAfter != want {
						t.Fatalf("%s: cost %d: %+v, want to retry after %v", name, n, r, want)
					}
				}
				reset := t.peek(t.charge(name, 1))[0].ResetAfter
				t.Advance(reset - time.Microsecond)
				t.left(name, max(0, 10-cost))
				t.Advance(time.Microsecond)
				if debt != rule.DebtCarry {
					over = 0
				}
				t.left(name, 10-min(over, 10))
				if over > 0 {
					if r := t.deny(t.charge(name, 10), 10-min(over, 10)); r.RetryAfter != 24*time.Hour {
						t.Fatalf("%s: %+v, want to retry after the next period", name, r)
					}
				}
				t.Advance(24 * time.Hour)
				t.left(name, 10)
			}
		}
	}
}

// openReservations fills a key with reservations up to their bound. One that is settled makes
// room.
func openReservations(t *trial) {
	const most = 10_000
	if t.Slow {
		t.Skip("takes many calls")
	}
	t.rule.Max, t.rule.Reserve = 1_000_000, time.Hour
	c := t.charge("k", 1)
	last := t.admit(c, t.rule.Max-1)
	for n := 1; n < most; n += 101 { // and 99 by 101
		calls := make([]rawstore.Call, 101)
		for i := range calls {
			calls[i] = callOf(c)
		}
		last = t.results(t.takeAll(calls...)[100])[0]
	}
	if r := t.take(c)[0]; !last.Allowed || r.Allowed || r.RetryAfter <= 59*time.Minute || r.RetryAfter > time.Hour {
		t.Errorf("%+v and then %+v, want the last denied until the first lapses", last, r)
	}
	t.settle(c, last, 1)
	t.admit(c, t.rule.Max-most-1)
}
