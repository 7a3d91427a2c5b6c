package memstate

import (
	"sort"

	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rule"
)

// A reserved is a state that keeps one count, of a window or a period of the calendar, and
// what of it is reserved. See reserved.lua.
//
//   - time is when the period began to be counted; 0: none has since a reset;
//   - bound is when the period ends;
//   - count is how much of it is used;
//   - list is the numbers of the state, and then three for each reservation, by when they lapse.
type reserved state

// The numbers of the state that begin its list, and those of a reservation.
const (
	headerReserved = iota // how much is reserved
	headerHighest         // number so far
	headerReset           // the highest number at the last reset
	headerEarlier         // the highest number of the periods before, if that is not below start, see reserved.lua
	headerDebt            // how much of count is a debt
	headerDebtDue         // when the period ends that a debt is charged to; 0: none was made
	headerSize            // how many come before the reservations

	itemEnd    = 0 // when it lapses
	itemNumber = 1 // its number
	itemCost   = 2
	itemSize   = 3 // how many a reservation has
)

// maxReservations is how many reservations a key has at most.
const maxReservations = 10_000

// A reservedCount is what a reserved state holds at a time.
type reservedCount struct {
	start, end, used, reserved int64
	debt, debtDue              int64
	lapsedItems, lapseTime     int64 // reservations, which come first, and when the last of them has
	carriedDebt, carriedDue    int64 // the debt that a new period begins with, and when it was due
	previousUsed               int64 // what was used of the one before
	newPeriod                  bool  // a new period begins
}

// number returns one of the numbers that begin the list.
func (r *reserved) number(which int) int64 {
	if len(r.list) == 0 {
		return 0
	}
	return r.list[which]
}

// reservations returns three numbers for each.
func (r *reserved) reservations() []int64 {
	if len(r.list) == 0 {
		return nil
	}
	return r.list[headerSize:]
}

func (r *reserved) countAt(clock int64, c *terms.Charge) (k reservedCount) {
	if r.dropTime > 0 && r.time > 0 {
		k = reservedCount{start: r.time, end: r.bound, used: r.count, reserved: r.number(headerReserved),
			debt: r.number(headerDebt), debtDue: r.number(headerDebtDue)}
		if c.Period == nil {
			k.end = k.start + c.Window
		}
		all, edge := r.reservations(), min(clock, k.end)
		for i := 0; i < len(all) && all[i+itemEnd] <= edge; i += itemSize {
			k.lapsedItems++
			k.lapseTime = all[i+itemEnd]
			k.used, k.reserved, k.debt = k.used-all[i+itemCost], k.reserved-all[i+itemCost], max(0, k.debt-all[i+itemCost])
		}
	}
	if k.newPeriod = clock >= k.end; k.newPeriod {
		begin := clock
		if clock < k.debtDue {
			k.carriedDebt, k.carriedDue = k.debt, k.debtDue
			if k.carriedDebt > 0 && c.Period == nil && clock < k.end+c.Window {
				begin = k.end
			}
		}
		k.start, k.end = begin, begin+c.Window
		if c.Period != nil {
			k.end = c.Param
			if clock >= c.Param {
				k.end = c.More
			}
		}
		k.previousUsed = k.used
		k.used, k.reserved, k.lapsedItems, k.debt, k.debtDue = k.carriedDebt, 0, 0, 0, 0
	}
	return k
}

// owe makes what is used beyond a max a debt, when so much was used before. What is given back
// pays it.
func (r *reservedCount) owe(before int64, c *terms.Charge) {
	if r.used < before {
		r.debt = max(0, r.debt-before+r.used)
	} else if c.Debt == rule.DebtCarry && r.used > max(before, c.Max) {
		r.debt += r.used - max(before, c.Max)
		switch {
		case r.debtDue > 0:
		case r.end < c.Param:
			r.debtDue = c.Param
		case r.end < c.More:
			r.debtDue = c.More
		default:
			r.debtDue = r.end + c.Window
		}
	}
}

func (r *reserved) look(clock int64, c *terms.Charge, v *view) {
	k := r.countAt(clock, c)
	v.time, v.room, v.retry, v.reset = max(clock, k.start), c.Max-k.used, 0, 0
	if !k.newPeriod {
		v.reset = k.end - clock
	} else if k.carriedDebt > 0 {
		v.reset = k.carriedDue - clock
	}
	all := r.reservations()
	if c.Cost > v.room {
		v.retry = v.reset
		if k.reserved > 0 && c.Cost <= v.room+k.reserved {
			v.retry = min(v.reset, all[len(all)-itemSize+itemEnd]-clock)
		} else if !k.newPeriod && k.debt > k.reserved && c.Cost > c.Max-k.debt+k.reserved {
			v.retry = k.debtDue - clock // what is owed leaves no room in the next period either
		}
	}
	if k.reserved >= maxReservations && int64(len(all)/itemSize)-k.lapsedItems >= maxReservations {
		v.retry = max(v.retry, min(v.reset, all[k.lapsedItems*itemSize+itemEnd]-clock))
	}
}

func (r *reserved) charge(clock int64, c *terms.Charge, v *view) {
	k := r.countAt(clock, c)
	k.used += c.Cost
	v.time = max(clock, r.number(headerHighest)+1)
	if c.Reserve > 0 {
		k.reserved += c.Cost
	}
	r.write(&k, v.time, clock, c)
	if c.Reserve > 0 {
		r.add(clock+c.Reserve, v.time, c.Cost)
	}
	v.reset, v.delay = k.end-clock, 0
}

// write makes a count the state's, without the reservations that have lapsed.
func (r *reserved) write(k *reservedCount, newest, clock int64, c *terms.Charge) {
	if k.newPeriod || len(r.list) == 0 {
		earlier := r.number(headerHighest)
		if earlier < k.start {
			earlier = 0
		}
		r.list = append(r.list[:0], 0, 0, r.number(headerReset), earlier, 0, 0)
	} else if k.lapsedItems > 0 {
		r.list = append(r.list[:headerSize], r.list[headerSize+k.lapsedItems*itemSize:]...)
	}
	lives := k.end
	if k.debt > 0 {
		lives = k.debtDue
	}
	if k.newPeriod || lives > k.end || r.bound != k.end {
		r.dropTime = lives
	}
	r.time, r.bound, r.count = k.start, k.end, min(k.used, spec.MaxAmount)
	r.list[headerReserved], r.list[headerHighest] = k.reserved, newest
	r.list[headerDebt], r.list[headerDebtDue] = k.debt, k.debtDue
}

func (r *reserved) add(end, n, units int64) {
	all := r.reservations()
	i := itemSize * sort.Search(len(all)/itemSize, func(i int) bool {
		return all[i*itemSize+itemEnd] > end || all[i*itemSize+itemEnd] == end && all[i*itemSize+itemNumber] > n
	})
	r.list = append(r.list, 0, 0, 0)
	all = r.reservations()
	copy(all[i+itemSize:], all[i:])
	all[i+itemEnd], all[i+itemNumber], all[i+itemCost] = end, n, units
}

// remove removes the reservation of a charge, and reports whether it was there. The first
// ones have lapsed, and are not.
func (r *reserved) remove(lapsed, at, units int64) bool {
	all := r.reservations()
	for i := int(lapsed) * itemSize; i < len(all); i += itemSize {
		if all[i+itemNumber] == at && all[i+itemCost] == units {
			r.list = append(r.list[:headerSize+i], r.list[headerSize+i+itemSize:]...)
			return true
		}
	}
	return false
}

// lostCharge returns what is charged where a reservation is settled that is not there, and was not
// reset.
func lostCharge(c *terms.Charge) int64 {
	if c.Reserve == 0 || c.Mark == terms.Lasted {
		return max(0, c.Cost)
	}
	if c.Mark == terms.Again {
		return 0
	}
	return c.Charged + c.Cost
}

// isEarlier reports whether a charge is of a period before the one of a count.
func (r *reserved) isEarlier(k *reservedCount, number int64) bool {
	return number < k.start || number <= r.number(headerEarlier)
}

// settle settles a charge, and reports whether that changes anything.
func (r *reserved) settle(clock int64, c *terms.Charge) bool {
	k := r.countAt(clock, c)
	grows, forgotten := lostCharge(c), c.At <= r.number(headerReset)
	here := !k.newPeriod && !r.isEarlier(&k, c.At) && !forgotten
	switch {
	case here && c.Reserve == 0:
		grows = c.Cost
	case here && r.remove(k.lapsedItems, c.At, c.Charged):
		grows, k.reserved = c.Cost, k.reserved-c.Charged
	case here && c.Mark == terms.Lasted:
		grows = c.Charged + c.Cost // it is lost
	case forgotten && c.Mark != terms.Again:
		grows = max(0, c.Cost)
	}
	if grows == 0 && (k.newPeriod || r.number(headerReserved) == k.reserved) {
		return false
	}
	before := k.used
	if k.used = max(0, k.used+grows); c.Debt == rule.DebtForgive && k.used > before {
		k.used = min(k.used, max(before, c.Max))
	}
	k.owe(before, c)
	r.write(&k, r.number(headerHighest), clock, c)
	return true
}

// renew renews a reservation, or forgets all if the cost is 0. It reports whether it counts.
func (r *reserved) renew(clock int64, c *terms.Charge) bool {
	if c.Cost == 0 {
		newest := max(clock, r.number(headerHighest))
		r.time, r.bound, r.count = 0, 0, 0
		r.list = append(r.list[:0], 0, newest, newest, 0, 0, 0)
		r.dropTime = clock + c.Reserve
		return false
	}
	k := r.countAt(clock, c)
	if len(r.list) > 0 && (k.newPeriod || r.isEarlier(&k, c.At) || c.At <= r.number(headerReset)) {
		c.At = 0
		return false
	}
	newest, before := r.number(headerHighest), k.used
	if !r.remove(k.lapsedItems, c.At, c.Cost) {
		newest = max(clock, newest+1)
		c.At, k.used, k.reserved = newest, k.used+c.Cost, k.reserved+c.Cost
	}
	k.owe(before, c)
	r.write(&k, newest, clock, c)
	r.add(clock+c.Reserve, c.At, c.Cost)
	return true
}
