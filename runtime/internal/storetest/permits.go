package storetest

import (
	"time"

	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rawstore"
	"github.com/rategen/rategen/runtime/rule"
)

// renew renews the permits of a charge that was made at a time, which the next renewal
// of the same call still knows.
func (t *trial) renew(c rawstore.Charge, at int64) {
	t.Helper()
	c.At = at
	calls := []rawstore.Call{callOf(c)}
	if err := rawstore.On(t.Store).Renew(t.Context(), calls); err != nil {
		t.Fatalf("renew: %v", err)
	}
	if err := calls[0].Err; err != nil || calls[0].Charges[0].At != at {
		t.Fatalf("renew: got %+v, %v", calls[0].Charges[0].Result, err)
	}
}

// permitsAreRenewed renews some permits, which then lapse a window later, and no others.
func permitsAreRenewed(t *trial) {
	t.rule.Window = time.Second
	few, many := t.charge("k", 3), t.charge("k", 4)
	first := t.admit(few, 7)
	second := t.admit(many, 3)
	for range 5 {
		t.Advance(600 * time.Millisecond)
		t.renew(few, first.At)
		t.admit(t.charge("other", 1), 9)
		t.Advance(400 * time.Millisecond)
		if r := t.peek(t.charge("other", 1))[0]; r.Remaining != 9 {
			t.Fatalf("other: got %+v", r)
		}
		t.left("k", 7)
		t.renew(few, first.At)
		t.Advance(time.Second)
		t.left("k", 10)
		// A permit that has lapsed is renewed all the same: its call does run.
		t.renew(few, first.At)
		t.renew(few, first.At)
		t.left("k", 7)
	}
	t.refund(many, second)
	t.left("k", 7)
	t.Advance(time.Second - time.Microsecond)
	t.left("k", 7)
	t.Advance(time.Microsecond)
	t.left("k", 10)
}

// permitsAreWrittenAgain renews permits of which the store knows nothing any more:
// they count again, even beyond the max, and no later permit is taken for them.
func permitsAreWrittenAgain(t *trial) {
	const lost = 1000 // later than all that is charged before
	at := t.admit(t.charge("other", 6), 4).At + lost
	t.renew(t.charge("k", 6), at)
	t.left("k", 4)
	second := t.admit(t.charge("k", 4), 0)
	if second.At-4 < at {
		t.Errorf("permits up to %d, although one of %d is in use", second.At, at)
	}
	t.renew(t.charge("k", 5), at-100)
	t.left("k", 0)
	t.refund(t.charge("k", 6), terms.Result{At: at})
	t.left("k", 1)
	t.refund(t.charge("k", 5), terms.Result{At: at - 100})
	t.left("k", 6)
	t.refund(t.charge("k", 4), second)
	t.left("k", 10)

	t.admit(t.charge("late", 2), 8)
	t.renew(t.charge("late", 3), at)
	if third := t.admit(t.charge("late", 5), 0); third.At-5 < at {
		t.Errorf("permits up to %d, although one of %d is in use", third.At, at)
	}
}

// permitsOfALongerWindow wants permits to count after the window has become much shorter,
// as they do not when they are from before a step of the clock.
func permitsOfALongerWindow(t *trial) {
	held := t.admit(t.charge("k", 6), 4)
	t.rule.Window /= 100
	t.deny(t.charge("k", 5), 4)
	t.left("k", 4)
	t.refund(t.charge("k", 6), held)
	t.left("k", 10)
}

// permitsAreReset forgets permits: no renewal brings them back, and to return them
// has no effect.
func permitsAreReset(t *trial) {
	first := t.admit(t.charge("k", 6), 4)
	for range 2 {
		if err := rawstore.On(t.Store).Reset(t.Context(), []rawstore.Charge{t.charge("k", 1)}); err != nil {
			t.Fatal(err)
		}
	}
	t.left("k", 10)
	c := t.charge("k", 6)
	c.At = first.At
	calls := []rawstore.Call{callOf(c)}
	if err := rawstore.On(t.Store).Renew(t.Context(), calls); err != nil || calls[0].Err != nil || calls[0].Charges[0].At != 0 {
		t.Errorf("renewed after a reset: got %+v, %v", calls[0], err)
	}
	t.left("k", 10)
	second := t.admit(t.charge("k", 7), 3)
	t.refund(t.charge("k", 6), first)
	t.left("k", 3)
	t.renew(t.charge("k", 7), second.At)
	t.left("k", 3)
	t.refund(t.charge("k", 7), second)
	t.left("k", 10)
}

// permitHint wants RetryAfter to say how long it takes at the speed at which
// permits came back, and no more than until they lapse.
func permitHint(t *trial) {
	t.rule.Window = 30 * time.Second
	whole := t.charge("k", 10)
	hint := func(cost int64, want time.Duration) {
		t.Helper()
		if r := t.deny(t.charge("k", cost), 0); r.RetryAfter != want {
			t.Errorf("cost %d: got %v, want %v", cost, r.RetryAfter, want)
		}
	}
	charged := t.admit(whole, 0)
	hint(1, 30*time.Second)
	hint(10, 30*time.Second)
	t.Advance(200 * time.Millisecond)
	hint(3, 29800*time.Millisecond)
	t.refund(whole, charged)

	charged = t.admit(whole, 0)
	hint(1, 20*time.Millisecond)
	hint(4, 80*time.Millisecond)
	hint(10, 200*time.Millisecond)
	t.Advance(600 * time.Millisecond)
	hint(1, 20*time.Millisecond)
	t.refund(whole, charged)

	charged = t.admit(whole, 0)
	hint(10, 250*time.Millisecond) // an eighth on the way from 200 ms to 600 ms
	t.Advance(30*time.Second - 10*time.Millisecond)
	hint(1, 10*time.Millisecond) // until it lapses
	for range 60 {
		t.refund(whole, charged)
		charged = t.admit(whole, 0)
		t.Advance(time.Microsecond)
	}
	if r := t.deny(t.charge("k", 1), 0); r.RetryAfter != time.Millisecond {
		t.Errorf("after short calls: got %+v, want the least RetryAfter", r)
	}
}

// permitsAfterAStep wants a permit to last for a window by the clock that was set
// back, and then not to keep its room.
func permitsAfterAStep(t *trial) {
	t.rule.Window = time.Second
	t.Advance(time.Second)
	t.admit(t.charge("k", 4), 6)
	t.Advance(-900 * time.Millisecond)
	second := t.admit(t.charge("k", 6), 0)
	t.Advance(time.Second - time.Microsecond)
	t.left("k", 0)
	t.Advance(time.Microsecond)
	t.left("k", 6)
	t.renew(t.charge("k", 6), second.At)
	t.left("k", 0)
	t.Advance(time.Second)
	t.left("k", 10)
}

// lapsedPermitsGo lets more permits lapse than one charge removes.
func lapsedPermitsGo(t *trial) {
	t.rule.Window, t.rule.Max = time.Second, 2000
	for range 8 {
		t.take(t.charge("k", rule.MaxLogCost))
	}
	t.deny(t.charge("k", 1), 0)
	t.Advance(time.Second)
	for i := range int64(20) {
		t.admit(t.charge("k", 1), 2000-1-i)
	}
	t.Advance(time.Second)
	t.left("k", 2000)
}
