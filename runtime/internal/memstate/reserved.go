package memstate

import (
	"sort"

	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// A reserved is a state that keeps one count, of a window or a period of the calendar, and
// what of it is reserved. See reserved.lua.
//
//   - at is when the period began to be counted; 0: none has since a reset;
//   - from is when the period ends;
//   - count is how much of it is used;
//   - list is the numbers of the state, and then three for each reservation, by when they lapse.
type reserved state

// The numbers of the state that begin its list, and those of a reservation.
const (
	open    = iota // how much is reserved
	highest        // number so far
	forgot         // the highest number at the last reset
	owed           // how much of count is a debt
	due            // when the period ends that a debt is charged to; 0: none was made
	header         // how many come before the reservations

	ends   = 0 // when it lapses
	name   = 1 // its number
	cost   = 2
	triple = 3 // how many a reservation has
)

// maxOpen is how many reservations a key has at most.
const maxOpen = 10_000

// A count is what a reserved state holds at a time.
type count struct {
	start, stop, used, open int64
	owed, due               int64
	lapsed                  int64 // reservations, which come first
	carried, pays           int64 // the debt that a new period begins with, and when it was due
	ended                   int64 // what was used of the one before
	fresh                   bool  // a new period begins
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
	return r.list[header:]
}

// countAt returns the count at a time.
func (r *reserved) countAt(clock int64, c *terms.Charge) (k count) {
	if r.kept > 0 && r.at > 0 {
		k = count{start: r.at, stop: r.from, used: r.count, open: r.number(open), owed: r.number(owed), due: r.number(due)}
		if c.Period == nil {
			k.stop = k.start + c.Window
		}
		all, edge := r.reservations(), min(clock, k.stop)
		for i := 0; i < len(all) && all[i+ends] <= edge; i += triple {
			k.lapsed++
			k.used, k.open, k.owed = k.used-all[i+cost], k.open-all[i+cost], max(0, k.owed-all[i+cost])
		}
	}
	if k.fresh = clock >= k.stop; k.fresh {
		begin := clock
		if clock < k.due {
			k.carried, k.pays = k.owed, k.due
			if k.carried > 0 && c.Period == nil && clock < k.stop+c.Window {
				begin = k.stop
			}
		}
		k.start, k.stop = begin, begin+c.Window
		if c.Period != nil {
			if k.stop = c.Param; clock >= c.Param {
				k.stop = c.More
			}
		}
		k.ended = k.used
		k.used, k.open, k.lapsed, k.owed, k.due = k.carried, 0, 0, 0, 0
	}
	return k
}

// owe makes what is used beyond a max a debt, when so much was used before. What is given back
// pays it.
func (k *count) owe(before int64, c *terms.Charge) {
	switch {
	case k.used < before:
		k.owed = max(0, k.owed-before+k.used)
	case c.Debt == terms.Carries && k.used > max(before, c.Max):
		k.owed += k.used - max(before, c.Max)
		switch {
		case k.due > 0:
		case k.stop < c.Param:
			k.due = c.Param
		case k.stop < c.More:
			k.due = c.More
		default:
			k.due = k.stop + c.Window
		}
	}
}

func (r *reserved) look(clock int64, c *terms.Charge, v *view) {
	k := r.countAt(clock, c)
	v.at, v.room, v.retry, v.reset = max(clock, k.start), c.Max-k.used, 0, 0
	if !k.fresh {
		v.reset = k.stop - clock
	} else if k.carried > 0 {
		v.reset = k.pays - clock
	}
	all := r.reservations()
	if c.Cost > v.room {
		v.retry = v.reset
		if k.open > 0 && c.Cost <= v.room+k.open {
			v.retry = min(v.reset, all[len(all)-triple+ends]-clock)
		} else if !k.fresh && k.owed > k.open && c.Cost > c.Max-k.owed+k.open {
			v.retry = k.due - clock // what is owed leaves no room in the next period either
		}
	}
	if k.open >= maxOpen && int64(len(all)/triple)-k.lapsed >= maxOpen {
		v.retry = max(v.retry, min(v.reset, all[k.lapsed*triple+ends]-clock))
	}
}

func (r *reserved) charge(clock int64, c *terms.Charge, v *view) {
	k := r.countAt(clock, c)
	k.used += c.Cost
	v.at = max(clock, r.number(highest)+1)
	if c.Reserve > 0 {
		k.open += c.Cost
	}
	r.write(&k, v.at, clock, c)
	if c.Reserve > 0 {
		r.add(clock+c.Reserve, v.at, c.Cost)
	}
	v.reset, v.delay = k.stop-clock, 0
}

// write makes a count the state's, without the reservations that have lapsed.
func (r *reserved) write(k *count, newest, clock int64, c *terms.Charge) {
	if k.fresh || len(r.list) == 0 {
		r.list = append(r.list[:0], 0, 0, r.number(forgot), 0, 0)
	} else if k.lapsed > 0 {
		r.list = append(r.list[:header], r.list[header+k.lapsed*triple:]...)
	}
	lives := k.stop
	if k.owed > 0 {
		lives = k.due
	}
	if k.fresh || lives > k.stop || r.from != k.stop {
		r.kept = lives
	}
	r.at, r.from, r.count = k.start, k.stop, min(k.used, spec.MaxAmount)
	r.list[open], r.list[highest], r.list[owed], r.list[due] = k.open, newest, k.owed, k.due
}

// add adds a reservation.
func (r *reserved) add(end, n, units int64) {
	all := r.reservations()
	i := triple * sort.Search(len(all)/triple, func(i int) bool {
		return all[i*triple+ends] > end || all[i*triple+ends] == end && all[i*triple+name] > n
	})
	r.list = append(r.list, 0, 0, 0)
	all = r.reservations()
	copy(all[i+triple:], all[i:])
	all[i+ends], all[i+name], all[i+cost] = end, n, units
}

// remove removes the reservation of a charge, and reports whether it was there. The first
// ones have lapsed, and are not.
func (r *reserved) remove(lapsed, at, units int64) bool {
	all := r.reservations()
	for i := int(lapsed) * triple; i < len(all); i += triple {
		if all[i+name] == at && all[i+cost] == units {
			r.list = append(r.list[:header+i], r.list[header+i+triple:]...)
			return true
		}
	}
	return false
}

// gone returns what is charged where a reservation is settled that is not there, and was not
// reset.
func gone(c *terms.Charge) int64 {
	switch {
	case c.Reserve == 0 || c.Mark == terms.Lasted:
		return max(0, c.Cost)
	case c.Mark == terms.Again:
		return 0
	}
	return c.Charged + c.Cost
}

// settle settles a charge, and reports whether that changes anything.
func (r *reserved) settle(clock int64, c *terms.Charge) bool {
	k := r.countAt(clock, c)
	grows, forgotten := gone(c), c.At <= r.number(forgot)
	here := !k.fresh && c.At >= k.start && !forgotten
	switch {
	case here && c.Reserve == 0:
		grows = c.Cost
	case here && r.remove(k.lapsed, c.At, c.Charged):
		grows, k.open = c.Cost, k.open-c.Charged
	case here && c.Mark == terms.Lasted:
		grows = c.Charged + c.Cost // it is lost
	case forgotten && c.Mark != terms.Again:
		grows = max(0, c.Cost)
	}
	if grows == 0 && (k.fresh || r.number(open) == k.open) {
		return false
	}
	before := k.used
	if k.used = max(0, k.used+grows); c.Debt == terms.Forgives && k.used > before {
		k.used = min(k.used, max(before, c.Max))
	}
	k.owe(before, c)
	r.write(&k, r.number(highest), clock, c)
	return true
}

// renew renews a reservation, or forgets all if the cost is 0. It reports whether it counts.
func (r *reserved) renew(clock int64, c *terms.Charge) bool {
	if c.Cost == 0 {
		newest := max(clock, r.number(highest))
		r.at, r.from, r.count = 0, 0, 0
		r.list = append(r.list[:0], 0, newest, newest, 0, 0)
		r.kept = clock + c.Reserve
		return false
	}
	k := r.countAt(clock, c)
	if len(r.list) > 0 && (k.fresh || c.At < k.start || c.At <= r.number(forgot)) {
		c.At = 0
		return false
	}
	newest, before := r.number(highest), k.used
	if !r.remove(k.lapsed, c.At, c.Cost) {
		newest = max(clock, newest+1)
		c.At, k.used, k.open = newest, k.used+c.Cost, k.open+c.Cost
	}
	k.owe(before, c)
	r.write(&k, newest, clock, c)
	r.add(clock+c.Reserve, c.At, c.Cost)
	return true
}
