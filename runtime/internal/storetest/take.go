package storetest

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rawstore"
)

func countDown(t *trial) {
	first := t.peek(t.charge("k", 1))[0]
	if first != (terms.Result{Allowed: true, Remaining: t.rule.Max}) {
		t.Fatalf("a new key: got %+v, want it whole", first)
	}
	for left := t.rule.Max - 1; left >= 0; left-- {
		before := t.Now()
		r := t.admit(t.charge("k", 1), left)
		// A slice starts before its events, a turn ends after them, and no two permits have
		// the same number.
		if !isPermits(&t.rule) && !isQueue(&t.rule) && r.At > t.Now() || r.At < before-t.rule.Resolution.Microseconds() {
			t.Errorf("charged at %d, between %d and %d", r.At, before, t.Now())
		}
	}
	for range 3 {
		if r := t.deny(t.charge("k", 1), 0); !isCalendar(&t.rule) && r.RetryAfter > t.rule.Window+t.rule.Window/16 {
			t.Errorf("retry after %v, want at most a window and a bucket", r.RetryAfter)
		}
	}
}

func deniedChangesNothing(t *trial) {
	t.admit(t.charge("k", 7), 3)
	before := t.peek(t.charge("k", 1))[0]
	for range 20 {
		t.deny(t.charge("k", 5), 3)
	}
	after := t.peek(t.charge("k", 1))[0]
	if diff := cmp.Diff(before, after); t.Exact && diff != "" {
		t.Errorf("denied calls changed the limit (-before +after):\n%s", diff)
	}
	t.admit(t.charge("k", 1), 2)
	t.admit(t.charge("k", 2), 0)
	t.deny(t.charge("k", 1), 0)
}

func peekChargesNothing(t *trial) {
	t.admit(t.charge("k", 4), 6)
	for range 3 {
		t.left("k", 6)
	}
	for _, cost := range []int64{7, 6} {
		want := t.peek(t.charge("k", cost))[0]
		got := t.take(t.charge("k", cost))[0]
		if want.At != 0 || want.Delay != 0 {
			t.Errorf("peek charged: %+v", want)
		}
		if got.Allowed != want.Allowed || t.Exact && got.RetryAfter != want.RetryAfter {
			t.Errorf("cost %d: peek found %+v, take %+v", cost, want, got)
		}
	}
	t.left("k", 0)
}

func costs(t *trial) {
	t.admit(t.charge("k", 3), 7)
	t.admit(t.charge("k", 3), 4)
	t.admit(t.charge("k", 3), 1)
	t.deny(t.charge("k", 2), 1)
	t.admit(t.charge("k", 1), 0)
	t.admit(t.charge("whole", 10), 0)
	t.deny(t.charge("whole", 10), 0)
}

func allOrNone(t *trial) {
	t.admit(t.charge("full", 10), 0)
	for range 3 {
		results := t.take(t.charge("a", 1), t.charge("full", 1), t.charge("b", 2))
		if !results[0].Allowed || results[1].Allowed || !results[2].Allowed {
			t.Fatalf("got %+v, want only the second denied", results)
		}
		for i, r := range results {
			if r.At != 0 || r.Delay != 0 || i != 1 && r.Remaining != 10 {
				t.Errorf("limit %d was charged: %+v", i, r)
			}
		}
	}
	t.left("a", 10)
	t.left("b", 10)
	results := t.take(t.charge("a", 1), t.charge("b", 2))
	if results[0].Remaining != 9 || results[1].Remaining != 8 || results[0].At == 0 || results[1].At == 0 {
		t.Errorf("got %+v, want both charged", results)
	}
	t.left("a", 9)
	t.left("b", 8)
}

func shadow(t *trial) {
	ghost := t.charge("ghost", 6)
	ghost.Rule.Mode = runtime.ModeShadow

	results := t.take(ghost, t.charge("k", 1))
	if !results[0].Allowed || results[0].Remaining != 4 || results[1].Remaining != 9 {
		t.Fatalf("got %+v, want both charged", results)
	}
	// No room in the shadow: it is not charged, and the other one is.
	results = t.take(ghost, t.charge("k", 1))
	if results[0].Allowed || results[0].RetryAfter <= 0 || results[0].At != 0 || results[0].Remaining != 4 {
		t.Errorf("shadow without room: got %+v", results[0])
	}
	if !results[1].Allowed || results[1].Remaining != 8 || results[1].At == 0 {
		t.Errorf("beside a shadow without room: got %+v", results[1])
	}
	t.left("ghost", 4)
	// A denied call charges no shadow.
	results = t.take(t.charge("k", 9), withCost(ghost, 1))
	if results[0].Allowed || results[1].At != 0 {
		t.Errorf("beside a denial: got %+v", results)
	}
	// On another server it is charged, and given back when the denial is known.
	for begin := time.Now(); t.peek(t.charge("ghost", 1))[0].Remaining != 4 && time.Since(begin) < 5*time.Second; {
		time.Sleep(time.Millisecond)
	}
	t.left("ghost", 4)
	t.left("k", 8)
}

func withCost(c rawstore.Charge, cost int64) rawstore.Charge {
	c.Cost = cost
	return c
}

func callOf(c rawstore.Charge) rawstore.Call { return rawstore.Call{Charges: []rawstore.Charge{c}} }

func batchInOrder(t *trial) {
	calls := t.takeAll(
		callOf(t.charge("k", 6)), callOf(t.charge("k", 6)), callOf(t.charge("k", 3)),
		callOf(t.charge("k", 2)), callOf(t.charge("k", 1)), callOf(t.charge("k", 1)))
	var got []int64
	for i := range calls {
		r := t.results(calls[i])[0]
		left := r.Remaining
		if !r.Allowed {
			left = -1 - left
		}
		got = append(got, left)
	}
	if diff := cmp.Diff([]int64{4, -5, 1, -2, 0, -1}, got); diff != "" {
		t.Errorf("left after each call, -1-left where denied (-want +got):\n%s", diff)
	}

	// Calls that share only some of their limits.
	calls = t.takeAll(
		rawstore.Call{Charges: []rawstore.Charge{t.charge("a", 8), t.charge("b", 1)}},
		rawstore.Call{Charges: []rawstore.Charge{t.charge("b", 9), t.charge("c", 1)}},
		rawstore.Call{Charges: []rawstore.Charge{t.charge("c", 1), t.charge("a", 3)}},
		rawstore.Call{Charges: []rawstore.Charge{t.charge("a", 2), t.charge("d", 1)}})
	for i, want := range []bool{true, true, false, true} {
		r := t.results(calls[i])
		if (r[0].Allowed && r[1].Allowed) != want {
			t.Errorf("call %d: got %+v, want admitted %v", i, r, want)
		}
	}
	t.left("a", 0)
	t.left("b", 0)
	t.left("c", 9)
	t.left("d", 9)
}

// noCharges puts calls without charges to a store, alone and beside others.
func noCharges(t *trial) {
	if r := t.take(); len(r) != 0 {
		t.Errorf("take: got %+v", r)
	}
	if r := t.peek(); len(r) != 0 {
		t.Errorf("peek: got %+v", r)
	}
	stale := rawstore.Call{Err: errors.New("of an earlier use")}
	calls := t.takeAll(stale, callOf(t.charge("k", 6)), rawstore.Call{Charges: []rawstore.Charge{}}, callOf(t.charge("k", 6)), stale)
	for i, call := range calls {
		if r := t.results(call); len(r) == 1 && r[0].Allowed != (i == 1) {
			t.Errorf("call %d: got %+v", i, r)
		}
	}
	t.left("k", 4)
	if err := errors.Join(rawstore.On(t.Store).Take(t.Context(), nil), rawstore.On(t.Store).Peek(t.Context(), nil)); err != nil {
		t.Errorf("no calls: %v", err)
	}
}

func batchOfStrangers(t *trial) {
	t.admit(t.charge("b", 10), 0)
	names := []string{"a", "b", "c", "d", "e", "f"}
	var calls []rawstore.Call
	for _, name := range names {
		calls = append(calls, callOf(t.charge(name, 2)))
	}
	t.takeAll(calls...)
	for i, name := range names {
		if r := t.results(calls[i])[0]; r.Allowed != (name != "b") {
			t.Errorf("%s: got %+v", name, r)
		}
	}
	for _, name := range names {
		if name != "b" {
			t.left(name, 8)
		}
	}
	t.takeAll() // no calls at all
}

func concurrent(t *trial) {
	t.rule.Max = 50
	var admitted atomic.Int64
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 10 {
				call := callOf(t.charge("k", 1))
				if err := rawstore.On(t.Store).Take(t.Context(), []rawstore.Call{call}); err != nil {
					t.Error(err)
				} else if call.Charges[0].Allowed {
					admitted.Add(1)
				}
			}
		})
	}
	wait.Wait()
	if admitted.Load() != 50 {
		t.Errorf("admitted %d of 80 calls, want 50", admitted.Load())
	}
}

func changedMax(t *trial) {
	t.admit(t.charge("k", 6), 4)
	changed := func(max, cost int64) rawstore.Charge {
		c := t.charge("k", cost)
		c.Max = max
		return c
	}
	t.deny(changed(3, 1), 0)
	t.deny(changed(6, 1), 0)
	t.admit(changed(7, 1), 0)
	t.admit(changed(20, 2), 11)
	t.admit(changed(1000, 900), 91)
	t.deny(changed(10, 1), 0)
	t.admit(changed(1000, 91), 0)
}
