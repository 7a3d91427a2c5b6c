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

// learn has a memory learn that calls of a cost were refused.
func learn(m *Memory, cost int64, retry time.Duration) {
	c := call(cost, 10)
	c.Charges[0].RetryAfter, c.Charges[0].ResetAfter = retry, retry+time.Second
	m.Learn(c, clock.Now(), clock.Now())
}

// TestCosts wants a refusal to answer calls of its own cost alone, with the exact
// RetryAfter of that cost, whatever other costs were refused.
func TestCosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(time.Hour)
		for cost := int64(3); cost <= 5; cost++ {
			learn(m, cost, time.Duration(cost)*time.Second)
		}
		time.Sleep(time.Second)
		for cost := int64(1); cost <= 8; cost++ {
			c := call(cost, 10)
			known, want := m.Recall(c.Charges, clock.Now()), cost >= 3 && cost <= 5
			if known != want {
				t.Errorf("cost %d: recalled %v, want %v", cost, known, want)
			}
			if r := c.Charges[0].RetryAfter; known && r != time.Duration(cost-1)*time.Second {
				t.Errorf("cost %d: retry after %v", cost, r)
			}
		}
		if c := call(3, 11); m.Recall(c.Charges, clock.Now()) {
			t.Error("a refusal answers a call with another max")
		}
		time.Sleep(2 * time.Second)
		if m.Recall(call(3, 10).Charges, clock.Now()) {
			t.Error("a refusal holds although its time is over")
		}
		if !m.Recall(call(4, 10).Charges, clock.Now()) {
			t.Error("another refusal of the key does not hold")
		}
	})
}

// TestTold wants a refusal to hold for as long as it does from when Redis was asked, and callers
// to be told what it takes from when Redis has answered.
func TestTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const trip, ms = 40 * time.Millisecond, time.Millisecond
		m := New(time.Hour)
		c := call(1, 10)
		c.Charges[0].RetryAfter, c.Charges[0].ResetAfter = 100*ms, 300*ms
		asked := clock.Now()
		time.Sleep(trip)
		m.Learn(c, asked, clock.Now())
		for passed := trip; passed < 120*ms; passed += 10 * ms {
			again := call(1, 10)
			known := m.Recall(again.Charges, clock.Now())
			r := again.Charges[0].Result
			if known != (passed < 100*ms) || known && (r.RetryAfter != 100*ms+trip-passed || r.ResetAfter != 300*ms+trip-passed) {
				t.Errorf("%v after Redis was asked: recalled %v, %+v", passed, known, r)
			}
			time.Sleep(10 * ms)
		}
	})
}

// TestUnanswered wants refusals to answer calls of higher costs too while Redis
// does not respond, with what is known of their RetryAfter.
func TestUnanswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(time.Millisecond)
		learn(m, 3, 3*time.Second)
		learn(m, 5, 5*time.Second)
		time.Sleep(time.Second)
		for cost, want := range map[int64]time.Duration{1: 0, 3: 2 * time.Second, 4: 2 * time.Second, 5: 4 * time.Second, 7: 4 * time.Second} {
			c := call(cost, 10)
			if known := m.Call(c, clock.Now(), Unanswered); known != (want > 0) || known && c.Charges[0].RetryAfter != want {
				t.Errorf("cost %d: known %v, retry after %v; want %v", cost, known, c.Charges[0].RetryAfter, want)
			}
		}
	})
}

// TestPart wants a refusal to be trusted for a moment only where calls are charged in parts.
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
	})
}

// TestRefuted wants an admission to end the refusals that it shows not to hold.
func TestRefuted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(time.Millisecond)
		for _, cost := range []int64{2, 5} {
			learn(m, cost, time.Minute)
			time.Sleep(time.Second)
			admitted := call(3, 10)
			admitted.Charges[0].Allowed = true
			m.Learn(admitted, clock.Now(), clock.Now())
			if known := m.Call(call(cost, 10), clock.Now(), Unanswered); known != (cost == 5) {
				t.Errorf("cost 3 was admitted: cost %d is refused: %v", cost, known)
			}
		}
	})
}

// TestBlocked wants the refusal by a block to answer with the rest of the block and
// nothing left, and to be trusted also where calls are charged in parts.
func TestBlocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, part := range []bool{false, true} {
			m := New(time.Hour)
			m.parts = part
			c := call(2, 10)
			r := &c.Charges[0].Result
			r.Blocked, r.Remaining, r.RetryAfter, r.ResetAfter = true, 1, time.Minute, time.Minute
			if !m.Learn(c, clock.Now(), clock.Now()) {
				t.Error("a block is no refusal")
			}
			for passed := time.Duration(0); passed < time.Minute; passed += 20 * time.Second {
				again := call(2, 10)
				if !m.Recall(again.Charges, clock.Now()) {
					t.Fatalf("part %v: not recalled after %v", part, passed)
				}
				want := terms.Result{Blocked: true, Recalled: true, RetryAfter: time.Minute - passed, ResetAfter: time.Minute - passed}
				if got := again.Charges[0].Result; got != want {
					t.Errorf("part %v: got %+v, want %+v", part, got, want)
				}
				time.Sleep(20 * time.Second)
			}
			if again := call(2, 10); m.Recall(again.Charges, clock.Now()) {
				t.Errorf("part %v: got %+v when the block is over", part, again.Charges[0].Result)
			}
			m.Learn(c, clock.Now(), clock.Now())
			m.Forget([]byte("k"))
			if m.Recall(call(2, 10).Charges, clock.Now()) {
				t.Error("a block is recalled that was forgotten")
			}
			ghost := call(2, 10)
			m.Learn(c, clock.Now()+1, clock.Now()+1)
			ghost.Charges[0].Shadow = true
			if m.Recall(ghost.Charges, clock.Now()) {
				t.Error("a block refuses a shadow")
			}
		}
	})
}
