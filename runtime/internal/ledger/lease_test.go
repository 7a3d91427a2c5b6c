package ledger

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A grant admits calls before its end, by the clock of each call: also in a process
// that was stopped, whose timers come late.
func TestGrantEnds(t *testing.T) {
	g := &grant{end: 10, chargedUnits: 5}
	g.unitsLeft.Store(5)
	for _, test := range []struct {
		now  time.Duration
		cost int64
		left int64
		ok   bool
	}{{9, 2, 3, true}, {10, 1, 0, false}, {11, 1, 0, false}, {9, 4, 0, false}, {9, 3, 0, true}, {9, 1, 0, false}} {
		if left, ok := g.take(test.cost, test.now); left != test.left || ok != test.ok {
			t.Errorf("%d at %d: got %d, %v, want %d, %v", test.cost, test.now, left, ok, test.left, test.ok)
		}
	}
	if g.put(1, 10) || !g.put(1, 9) {
		t.Error("units were put back after the end, or not before it")
	}
}

// However calls take units and put some back while a grant is closed, those that
// were taken and those that are left are never more than it had.
func TestGrantCloses(t *testing.T) {
	const units, callers = 2000, 8
	for range 300 {
		g := &grant{end: time.Hour}
		g.unitsLeft.Store(units)
		var taken, left atomic.Int64
		var all sync.WaitGroup
		for caller := range callers {
			all.Go(func() {
				cost := int64(1 + caller%3)
				for i := 0; ; i++ {
					if _, ok := g.take(cost, 0); !ok {
						return
					}
					taken.Add(cost)
					if i%4 == 0 && g.put(1, 0) {
						taken.Add(-1)
					}
				}
			})
		}
		all.Go(func() {
			for g.unitsLeft.Load() > units/2 {
			}
			left.Store(g.close())
			if g.close() != 0 {
				t.Error("units are left of a grant twice")
			}
			if _, ok := g.take(1, 0); ok || g.put(1, 0) {
				t.Error("a closed grant was used")
			}
		})
		all.Wait()
		if sum := taken.Load() + left.Load(); sum > units {
			t.Fatalf("%d units were taken and %d left of %d", taken.Load(), left.Load(), units)
		}
	}
}
