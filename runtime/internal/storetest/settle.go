package storetest

import (
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rawstore"
	"github.com/rategen/rategen/runtime/rule"
)

func settleForLess(t *trial) {
	first := t.admit(t.charge("k", 6), 4)
	t.Advance(time.Millisecond)
	t.admit(t.charge("k", 4), 0)
	t.settle(t.charge("k", 6), first, 2)
	t.left("k", 4)
	t.admit(t.charge("k", 4), 0)
	t.deny(t.charge("k", 1), 0)
}

func settleForMore(t *trial) {
	first := t.admit(t.charge("k", 2), 8)
	t.settle(t.charge("k", 2), first, 7)
	t.left("k", 3)
	t.admit(t.charge("k", 3), 0)
	t.deny(t.charge("k", 1), 0)
	t.left("other", 10)
}

func settleForTheSame(t *trial) {
	first := t.admit(t.charge("k", 5), 5)
	t.settle(t.charge("k", 5), first, 5)
	t.left("k", 5)
}

// settleIntoDebt has a call cost far more than the limit has room for. Whoever
// calls then is told when there will be room, and there is not before.
func settleIntoDebt(t *trial) {
	for _, owed := range []int64{1, 9, 10, 25, 200} {
		name := "k" + string(rune('a'+owed%26))
		first := t.admit(t.charge(name, 10), 0)
		t.Advance(time.Millisecond)
		t.settle(t.charge(name, 10), first, 10+owed)
		denied := t.deny(t.charge(name, 1), 0)
		if drain := t.rule.Window / time.Duration(t.rule.Max) * time.Duration(owed); isMeter(&t.rule) && denied.RetryAfter < drain {
			t.Fatalf("owed %d: RetryAfter is %v, and draining takes %v", owed, denied.RetryAfter, drain)
		}
		t.Advance(denied.RetryAfter - time.Microsecond)
		t.deny(t.charge(name, 1), 0)
		t.Advance(time.Microsecond)
		if r := t.take(t.charge(name, 1))[0]; !r.Allowed {
			t.Fatalf("owed %d: got %+v after the RetryAfter", owed, r)
		}
	}
}

// settleIntoEndlessDebt has calls cost more than the limit admits in centuries. Nobody
// is let through for it, whatever the window is by then, and a reset ends it.
func settleIntoEndlessDebt(t *trial) {
	for i, window := range []time.Duration{rule.MinWindow, time.Second, time.Hour, rule.MaxWindow} {
		t.rule.Window = window
		if isQueue(&t.rule) {
			t.rule.Wait = time.Second
		}
		name := "k" + string(rune('a'+i))
		c := t.charge(name, 1)
		first := t.take(c)[0]
		if c.Rule.Algorithm != runtime.SlidingCounter { // its keys name the window
			c.Rule.Window = rule.MaxWindow
		}
		for range 3 {
			t.settle(c, first, rule.MaxCount)
			denied := t.peek(c)[0]
			if denied.Allowed || denied.Remaining != 0 || denied.RetryAfter <= 0 || denied.RetryAfter > 143*366*24*time.Hour {
				if window >= time.Second || c.Rule.Algorithm != runtime.SlidingCounter { // else it may have left the window
					t.Fatalf("window %v: got %+v", window, denied)
				}
			}
			t.take(c)
		}
		if err := rawstore.On(t.Store).Reset(t.Context(), []rawstore.Charge{c}); err != nil {
			t.Fatal(err)
		}
		t.left(name, t.rule.Max)
	}
}

// settleAfterTheWindow has a call last longer than its window. What it cost beyond
// its reserve is charged as of now.
func settleAfterTheWindow(t *trial) {
	first := t.admit(t.charge("k", 2), 8)
	t.Advance(2 * t.rule.Window)
	t.left("k", 10)
	t.settle(t.charge("k", 2), first, 6)
	t.left("k", 6)
}

// settleWhatIsGone charges a key that was forgotten meanwhile.
func settleWhatIsGone(t *trial) {
	first := t.admit(t.charge("k", 2), 8)
	if err := rawstore.On(t.Store).Reset(t.Context(), []rawstore.Charge{t.charge("k", 1)}); err != nil {
		t.Fatal(err)
	}
	t.settle(t.charge("k", 2), first, 5)
	t.left("k", 7)
}
