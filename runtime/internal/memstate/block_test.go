package memstate

import (
	"testing"
	"time"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime/internal/calendar"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// TestHoldAfterClockStep begins a hold on a key that the clock, a step back later, no longer
// counts: the hold goes by the length of the period at that time, as the next charge does.
func TestHoldAfterClockStep(t *testing.T) {
	t.Parallel()
	for unit, window := range map[spec.Unit]time.Duration{spec.Day: 24 * time.Hour, spec.Week: 7 * 24 * time.Hour} {
		for _, back := range []time.Duration{0, time.Second, window, window + time.Hour, 2 * window, 4 * window} {
			period, err := calendar.Load(unit, "UTC", 0)
			if err != nil {
				t.Fatal(err)
			}
			charge := func(cost, at int64) *terms.Charge {
				c := &terms.Charge{Key: []byte("k"), Cost: cost}
				c.Terms = terms.Terms{Algorithm: algorithm.Calendar, Max: 3, Period: period, Block: 1000, Window: unit.Longest().Microseconds()}
				c.At = at
				return c
			}
			m := New(64)
			decide(m, start, charge(1, 0), true)
			now := start - back.Microseconds()
			m.Hold(now, charge(0, time.Second.Microseconds()))
			if c := charge(1, 0); !decide(m, now+1, c, true) || !c.Blocked || c.Allowed {
				t.Errorf("%v after a step back by %v: the hold does not hold: %+v", unit, back, c.Result)
			}
		}
	}
}
