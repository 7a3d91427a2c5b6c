package script_test

import (
	"slices"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/runtime/internal/goredis"
	"github.com/rategen/rategen/runtime/internal/script"
)

// TestTimesInRow has each of a run of calls stand for more callers than there is room for. As
// many as fit are charged, and the others are told what is left then.
func TestTimesInRow(t *testing.T) {
	client := ownRedis(t)
	library := script.Library{Change: mutated}
	for a := range algorithm.Algorithms {
		switch a {
		case algorithm.Queue, algorithm.Reserved, algorithm.ReservedPeriod:
			continue // whose calls stand for one caller each
		}
		calls := callsOf(a, 1, 1)[:3]
		for i := range calls {
			c := &calls[i].Charges[0]
			c.Max = 5
			if a.Is(algorithm.Drains) {
				c.Param = c.Max
			}
		}
		for _, want := range []struct{ callers, admitted, left int64 }{{2, 2, 3}, {4, 3, 0}, {1, 0, 0}} {
			found := make([]script.Outcome, len(calls))
			e := new(script.Execution)
			e.Fill(script.Take, calls, slices.Repeat([]int64{want.callers}, len(calls)), found, time.Now().UnixMicro())
			e.WithText = true
			library.Send(t.Context(), goredis.New(client), []*script.Execution{e})
			ok(t, e.Err)
			for i := range found {
				if f := &found[i]; f.Admitted != want.admitted || f.Remaining != want.left || f.RetryAfter > 0 != (f.Admitted < want.callers) {
					t.Errorf("algorithm %d: %d callers of key %d, got %+v, want %d admitted and %d left", a, want.callers, i, *f, want.admitted, want.left)
				}
			}
		}
		client.FlushAll(t.Context())
	}
}
