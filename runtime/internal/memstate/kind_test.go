package memstate

import (
	"testing"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// TestCheck leaves out each step of each algorithm, which keeps the program from
// starting.
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
