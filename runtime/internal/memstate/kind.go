package memstate

import (
	"fmt"

	"github.com/rategen/rategen/runtime/internal/terms"
)

// A kind is one way of counting in a state. Algorithms that decide alike in
// memory are of one kind, and so may share the state of a key.
type kind uint8

const (
	_ kind = iota * steps // a state without charges; no algorithm is of this kind
	logKind
	counterKind
	windowKind
	periodKind
	bucketKind
	permitKind
	reservedKind
)

// kinds holds the kind of each algorithm. A new algorithm needs a row here, and
// a new kind a case in do.
var kinds = [terms.Algorithms]kind{
	terms.LogZSet:        logKind,
	terms.LogPacked:      logKind,
	terms.Counter:        counterKind,
	terms.LayeredCounter: counterKind,
	terms.FixedWindow:    windowKind,
	terms.Calendar:       periodKind,
	terms.TokenBucket:    bucketKind,
	terms.LeakyBucket:    bucketKind,
	terms.Queue:          bucketKind,
	terms.Permits:        permitKind,
	terms.Reserved:       reservedKind,
	terms.ReservedPeriod: reservedKind,
}

// A step is a part of a decision. Added to a kind it makes one number.
type step = kind

const (
	look   step = iota // fills in the view and changes nothing
	charge             // charges c.Cost to what look has just seen, also if it does not fit
	refund             // takes back up to c.Cost of what was charged at c.At
	renew              // keeps what was charged at c.At from lapsing, of what calls hold
	settle             // makes c.Charged, which was charged at c.At, c.Cost more; only of reservations
	steps
)

// do does one step with a state, in the way of the charge's kind, and reports whether a step
// that changes one has. It knows that of periods only. No other place
// tells the kinds apart. It is a switch and not a table of functions, since
// pointer arguments of an indirect call escape to the heap. It is one switch and not
// one for each kind, since the compiler makes a table of jumps of that.
func (s *state) do(step step, clock int64, c *terms.Charge, v *view) (written bool) {
	switch kinds[c.Algorithm] + step {
	case logKind + look:
		(*log)(s).look(clock, c, v)
	case logKind + charge:
		(*log)(s).charge(clock, c, v)
	case logKind + refund:
		(*log)(s).refund(c)
	case counterKind + look:
		(*counter)(s).look(clock, c, v)
	case counterKind + charge:
		(*counter)(s).charge(clock, c, v)
	case counterKind + refund:
		(*counter)(s).refund(c)
	case windowKind + look:
		(*window)(s).look(clock, c, v)
	case windowKind + charge:
		(*window)(s).charge(clock, c, v)
	case windowKind + refund:
		(*window)(s).refund(clock, c)
	case periodKind + look:
		(*period)(s).look(clock, c, v)
	case periodKind + charge:
		(*period)(s).charge(clock, c, v)
	case periodKind + refund:
		return (*period)(s).refund(clock, c)
	case bucketKind + look:
		(*bucket)(s).look(clock, c, v)
	case bucketKind + charge:
		(*bucket)(s).charge(clock, c, v)
	case bucketKind + refund:
		(*bucket)(s).refund(clock, c)
	case permitKind + look:
		(*permits)(s).look(clock, c, v)
	case permitKind + charge:
		(*permits)(s).charge(clock, c, v)
	case permitKind + refund:
		(*permits)(s).refund(clock, c)
	case permitKind + renew:
		(*permits)(s).renew(clock, c)
	case reservedKind + look:
		(*reserved)(s).look(clock, c, v)
	case reservedKind + charge:
		(*reserved)(s).charge(clock, c, v)
	case reservedKind + refund:
		c.Cost = -c.Cost
		return (*reserved)(s).settle(clock, c)
	case reservedKind + renew:
		return (*reserved)(s).renew(clock, c)
	case reservedKind + settle:
		return (*reserved)(s).settle(clock, c)
	}
	return true
}

func init() {
	for a := range terms.Algorithms {
		if err := check(a, (*state).do); err != nil {
			panic(err)
		}
	}
}

// check counts one event by an algorithm and refunds it. It returns an error if a step does
// nothing, as without a row in kinds or a case in do.
func check(a terms.Algorithm, do func(s *state, step step, clock int64, c *terms.Charge, v *view) bool) error {
	const clock, max = 1_000_000, 3
	c := terms.Charge{Terms: terms.Terms{Algorithm: a, Window: 1000, Max: max}, Cost: 1, Charged: 1}
	switch {
	case a.Drains():
		c.Param = max
	case a == terms.Calendar || a == terms.ReservedPeriod:
		c.Param, c.More = clock+1000, clock+2000
	}
	var s state
	var v view
	room := func() int64 {
		v = view{}
		do(&s, look, clock, &c, &v)
		return v.room
	}
	if whole := room(); whole != max {
		return fmt.Errorf("memstate: algorithm %d has no state", a)
	}
	do(&s, charge, clock, &c, &v)
	if c.At, c.Mark = v.at, v.mark; room() != max-1 {
		return fmt.Errorf("memstate: algorithm %d charges nothing", a)
	}
	if do(&s, refund, clock, &c, &v); room() != max {
		return fmt.Errorf("memstate: algorithm %d refunds nothing", a)
	}
	return nil
}
