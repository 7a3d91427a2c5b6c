package recall

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/terms"
)

func call(cost, max int64) *terms.Call {
	return &terms.Call{Charges: []terms.Charge{{
		Terms: terms.Terms{Algorithm: algorithm.LogZSet, Window: 1e6, Max: max}, Key: []byte("k"), Cost: cost,
	}}}
}

// TestPart wants a refusal to be trusted for a moment only where calls are charged in parts, but for that of a block.
func TestPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(time.Hour)
		m.Parts()
		c := call(1, 10)
		c.Charges[0].RetryAfter = time.Minute
		m.Learn(c, clock.Now(), clock.Now())
		if !m.Recall(call(1, 10).Charges, clock.Now()) {
			t.Fatal("the refusal is not known")
		}
		time.Sleep(partTime)
		asking := call(1, 10)
		if m.Recall(asking.Charges, clock.Now()) || !asking.Charges[0].Rechecks {
			t.Error("nobody asks Redis again")
		}
		if !m.Recall(call(1, 10).Charges, clock.Now()) {
			t.Error("a second call asks Redis too")
		}
		m.Release(asking.Charges)
		if m.Recall(call(1, 10).Charges, clock.Now()) {
			t.Error("nobody asks Redis again after the first gave up")
		}
		blocked := call(2, 10)
		blocked.Charges[0].Result = terms.Result{Blocked: true, Remaining: 1, RetryAfter: time.Minute}
		m.Learn(blocked, clock.Now(), clock.Now())
		time.Sleep(partTime)
		if c := call(2, 10); !m.Recall(c.Charges, clock.Now()) || c.Charges[0].Remaining != 0 {
			t.Errorf("a block is not known, or leaves something: %+v", c.Charges[0].Result)
		}
	})
}
