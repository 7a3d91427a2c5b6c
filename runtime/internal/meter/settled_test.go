package meter_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime/internal/meter"
)

// settled is a source that has all room, of which charges lapse, and the costs at which they
// were settled.
type settled struct {
	sync.Mutex
	costs []int64
}

func (*settled) Most(int, int64) (most int64, free bool) { return 0, false }

func (*settled) Take(wants []meter.Want, _ bool) error {
	for i := range wants {
		wants[i].At, wants[i].Lapses = 1, true
	}
	return nil
}

func (s *settled) Settle(_ []meter.Charge, costs []int64, _ meter.Moment) {
	s.Lock()
	defer s.Unlock()
	s.costs = append(s.costs, costs...)
}

// TestUsedUpIsSettled uses all of a charge that lapses, later than another limit was charged.
// The charge is settled in its own time, so that it lasts.
func TestUsedUpIsSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := new(settled)
		m := meter.Meter{Charger: source, Ctx: t.Context()}
		m.Begin(meter.Charge{Cost: 2, At: 1}, 2)
		m.Begin(meter.Charge{}, 0)
		time.Sleep(meter.Keep / 2)
		if err := m.Charge([]int64{0, 3}, false); err != nil {
			t.Fatal(err)
		}
		for _, want := range [][]int64{nil, {0, -1}, {0, -1, -1, 3}} { // now, and when the first and the second are due
			source.Lock()
			if !slices.Equal(source.costs, want) {
				t.Errorf("settled at %v, want %v", source.costs, want)
			}
			source.Unlock()
			time.Sleep(meter.Keep/2 + time.Millisecond)
		}
		m.Close(nil)
	})
}
