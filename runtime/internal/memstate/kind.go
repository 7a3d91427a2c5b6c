package memstate

import (
	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// A kind is one way of counting in a state, times [steps]; 0 is a state without charges. Algorithms
// that decide alike in memory are of one kind, and so may share the state of a key.
type kind uint8

const (
	logKind      = kind(algorithm.Log) * steps
	counterKind  = kind(algorithm.Count) * steps
	windowKind   = kind(algorithm.Window) * steps
	periodKind   = kind(algorithm.Dates) * steps
	bucketKind   = kind(algorithm.Level) * steps
	permitKind   = kind(algorithm.Permit) * steps
	dividedKind  = kind(algorithm.Division) * steps
	reservedKind = kind(algorithm.Reservation) * steps
)

// kinds holds the kind of each algorithm. A new state needs its kind, and cases in run.
var kinds = func() (all [algorithm.Algorithms]kind) {
	for a := range algorithm.Algorithms {
		all[a] = kind(a.Row().State) * steps
	}
	return all
}()

// A step is a part of a decision. Added to a kind it makes one number.
type step = kind

const (
	lookStep   step = iota // fills in the view and changes nothing
	chargeStep             // charges c.Cost to what look has just seen, also if it does not fit
	refundStep             // takes back up to c.Cost of what was charged at c.At
	renewStep              // keeps what was charged at c.At from lapsing, of what calls hold
	settleStep             // makes c.Charged, which was charged at c.At, c.Cost more; only of reservations
	steps
)

// run does one step with a state, in the way of the charge's kind, and reports whether a step
// that changes one has. It knows that of periods only. No other place
// tells the kinds apart. It is a switch and not a table of functions, since
// pointer arguments of an indirect call escape to the heap. It is one switch and not
// one for each kind, since the compiler makes a table of jumps of that.
func (s *state) run(step step, clock int64, c *terms.Charge, v *view) (written bool) {
	switch kinds[c.Algorithm] + step {
	case logKind + lookStep:
		(*log)(s).look(clock, c, v)
	case logKind + chargeStep:
		(*log)(s).charge(clock, c, v)
	case logKind + refundStep:
		(*log)(s).refund(c)
	case counterKind + lookStep:
		(*counter)(s).look(clock, c, v)
	case counterKind + chargeStep:
		(*counter)(s).charge(clock, c, v)
	case counterKind + refundStep:
		(*counter)(s).refund(c)
	case windowKind + lookStep:
		(*window)(s).look(clock, c, v)
	case windowKind + chargeStep:
		(*window)(s).charge(clock, c, v)
	case windowKind + refundStep:
		(*window)(s).refund(clock, c)
	case periodKind + lookStep:
		(*period)(s).look(clock, c, v)
	case periodKind + chargeStep:
		(*period)(s).charge(clock, c, v)
	case periodKind + refundStep:
		return (*period)(s).refund(clock, c)
	case bucketKind + lookStep:
		(*bucket)(s).look(clock, c, v)
	case bucketKind + chargeStep:
		(*bucket)(s).charge(clock, c, v)
	case bucketKind + refundStep:
		(*bucket)(s).refund(clock, c)
	case dividedKind + lookStep:
		(*divided)(s).look(clock, c, v)
	case dividedKind + chargeStep:
		(*divided)(s).charge(clock, c, v)
	case dividedKind + refundStep:
		(*divided)(s).refund(clock, c)
	case permitKind + lookStep:
		(*permits)(s).look(clock, c, v)
	case permitKind + chargeStep:
		(*permits)(s).charge(clock, c, v)
	case permitKind + refundStep:
		(*permits)(s).refund(clock, c)
	case permitKind + renewStep:
		(*permits)(s).renew(clock, c)
	case reservedKind + lookStep:
		(*reserved)(s).look(clock, c, v)
	case reservedKind + chargeStep:
		(*reserved)(s).charge(clock, c, v)
	case reservedKind + refundStep:
		c.Cost = -c.Cost
		return (*reserved)(s).settle(clock, c)
	case reservedKind + renewStep:
		return (*reserved)(s).renew(clock, c)
	case reservedKind + settleStep:
		return (*reserved)(s).settle(clock, c)
	}
	return true
}
