package memstate

import (
	"fmt"
	"testing"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// TestCheck wants each algorithm to count, and leaves out each step of each.
func TestCheck(t *testing.T) {
	t.Parallel()
	for a := range algorithm.Algorithms {
		if err := check(a, (*state).run); err != nil {
			t.Errorf("algorithm %d: %v", a, err)
		}
		for _, missing := range []step{lookStep, chargeStep, refundStep} {
			without := func(s *state, step step, clock int64, c *terms.Charge, v *view) bool {
				return step != missing && s.run(step, clock, c, v)
			}
			if check(a, without) == nil {
				t.Errorf("algorithm %d without step %d: no error", a, missing)
			}
		}
		if kinds[a] == 0 {
			t.Errorf("algorithm %d is of no kind", a)
		}
	}
	if check(algorithm.Queue, func(*state, step, int64, *terms.Charge, *view) bool { return true }) == nil {
		t.Error("an algorithm without a state: no error")
	}
}

// check counts one event by an algorithm and refunds it. It returns an error if a step does
// nothing, as without a row in kinds or a case in run.
func check(a algorithm.Algorithm, do func(s *state, step step, clock int64, c *terms.Charge, v *view) bool) error {
	const clock, max = 1_000_000, 3
	c := terms.Charge{Terms: terms.Terms{Algorithm: a, Window: 1000, Max: max}, Cost: 1, Charged: 1}
	if a.Is(algorithm.Drains) {
		c.Param = max
	} else if a.Row().Need&algorithm.Period != 0 {
		c.Param, c.More = clock+1000, clock+2000
	}
	var s state
	var v view
	room := func() int64 {
		v = view{}
		do(&s, lookStep, clock, &c, &v)
		return v.room
	}
	if whole := room(); whole != max {
		return fmt.Errorf("memstate: algorithm %d has no state", a)
	}
	do(&s, chargeStep, clock, &c, &v)
	c.At, c.Mark = v.time, v.mark
	if room() != max-1 {
		return fmt.Errorf("memstate: algorithm %d charges nothing", a)
	}
	do(&s, refundStep, clock, &c, &v)
	if room() != max {
		return fmt.Errorf("memstate: algorithm %d refunds nothing", a)
	}
	return nil
}
