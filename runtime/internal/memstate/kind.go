package memstate

import (
	"fmt"

	"github.com/rategen/rategen/runtime/internal/terms"
)

// A kind is one way of counting in a state. Algorithms that decide alike in
// memory are of one kind, and so may share the state of a key.
type kind uint8

const (
	_ kind = iota // a state without charges; no algorithm is of this kind
	logKind
	counterKind
	windowKind
	bucketKind
	permitKind
)

// kinds holds the kind of each algorithm. A new algorithm needs a row here, and
// a new kind a case in do.
var kinds = [terms.Algorithms]kind{
	terms.LogZSet:        logKind,
	terms.LogPacked:      logKind,
	terms.Counter:        counterKind,
	terms.LayeredCounter: counterKind,
	terms.FixedWindow:    windowKind,
	terms.TokenBucket:    bucketKind,
	terms.LeakyBucket:    bucketKind,
	terms.Queue:          bucketKind,
	terms.Permits:        permitKind,
}

// A step is a part of a decision.
type step uint8

const (
	look   step = iota // fills in the view and changes nothing
	charge             // charges c.Cost to what look has just seen, also if it does not fit
	refund             // takes back up to c.Cost of what was charged at c.At
	renew              // keeps what was charged at c.At from lapsing; only permits lapse
)

// do does one step with a state, in the way of the charge's kind. No other place
// tells the kinds apart. It is a switch and not a table of functions, since
// pointer arguments of an indirect call escape to the heap.
func (s *state) do(step step, clock int64, c *terms.Charge, v *view) {
	switch kinds[c.Algorithm] {
	case logKind:
		switch l := (*log)(s); step {
		case look:
			l.look(clock, c, v)
		case charge:
			l.charge(clock, c, v)
		case refund:
			l.refund(c)
		}
	case counterKind:
		switch m := (*counter)(s); step {
		case look:
			m.look(clock, c, v)
		case charge:
			m.charge(clock, c, v)
		case refund:
			m.refund(c)
		}
	case windowKind:
		switch w := (*window)(s); step {
		case look:
			w.look(clock, c, v)
		case charge:
			w.charge(clock, c, v)
		case refund:
			w.refund(clock, c)
		}
	case bucketKind:
		switch b := (*bucket)(s); step {
		case look:
			b.look(clock, c, v)
		case charge:
			b.charge(clock, c, v)
		case refund:
			b.refund(clock, c)
		}
	case permitKind:
		switch p := (*permits)(s); step {
		case look:
			p.look(clock, c, v)
		case charge:
			p.charge(clock, c, v)
		case refund:
			p.refund(clock, c)
		case renew:
			p.renew(clock, c)
		}
	}
}

func init() {
	for a := range terms.Algorithms {
		if err := check(a, (*state).do); err != nil {
			panic(err)
		}
	}
}

// check has an algorithm count one event and take it back. It returns an error
// if a step does nothing, as it does without a row in kinds or a case in do.
func check(a terms.Algorithm, do func(s *state, step step, clock int64, c *terms.Charge, v *view)) error {
	const clock, max = 1_000_000, 3
	c := terms.Charge{Terms: terms.Terms{Algorithm: a, Window: 1000, Max: max}, Cost: 1, Charged: 1}
	if a.Bucket() {
		c.Param = max
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
	if c.At = v.at; room() != max-1 {
		return fmt.Errorf("memstate: algorithm %d charges nothing", a)
	}
	if do(&s, refund, clock, &c, &v); room() != max {
		return fmt.Errorf("memstate: algorithm %d refunds nothing", a)
	}
	return nil
}
