package storetest

import (
	"time"

	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rawstore"
)

func refund(t *trial) {
	first := t.admit(t.charge("k", 4), 6)
	t.Advance(time.Millisecond)
	second := t.admit(t.charge("k", 6), 0)
	t.refund(t.charge("k", 4), first)
	t.left("k", 4)
	t.refund(t.charge("k", 2), second) // a part of it
	t.left("k", 6)
	t.admit(t.charge("k", 6), 0)
	t.deny(t.charge("k", 1), 0)
}

func refundIsClamped(t *trial) {
	r := t.admit(t.charge("k", 3), 7)
	for range 3 {
		t.refund(t.charge("k", 10), r)
		t.left("k", 10)
	}
	t.admit(t.charge("k", 10), 0)
	t.deny(t.charge("k", 1), 0)
}

func refundTwice(t *trial) {
	first := t.admit(t.charge("k", 2), 8)
	t.Advance(20 * time.Millisecond) // into another slice
	t.admit(t.charge("k", 3), 5)
	for range 3 {
		t.refund(t.charge("k", 2), first)
		t.left("k", 7)
	}
}

func refundOfWhatHasLeft(t *trial) {
	t.admit(t.charge("other", 5), 5)
	t.rule.Window = 100 * time.Millisecond
	r := t.admit(t.charge("k", 5), 5)
	t.Advance(2 * t.rule.Window)
	t.refund(t.charge("k", 5), r)
	t.left("k", 10)
	t.admit(t.charge("k", 10), 0)
	t.rule.Window = 10 * time.Hour
	t.left("other", 5)
}

// refundOfAnEarlierLife gives back, at once and again, what was charged before the key was reset,
// and in part settled then. Its window may be another one since, and its slices.
func refundOfAnEarlierLife(t *trial) {
	window, resolution := time.Minute, 6*t.rule.Resolution
	for i, since := range []struct{ reset, window time.Duration }{
		{time.Microsecond, window}, {time.Millisecond, window}, {time.Second, window}, {time.Microsecond, window / 2},
		{time.Microsecond, window * 2}, {30 * time.Second, window * 2}, {window, window},
	} {
		name := "k" + string(rune('a'+i))
		t.rule.Window, t.rule.Resolution = window, resolution
		first := t.admit(t.charge(name, 6), 4)
		t.settle(t.charge(name, 6), first, 4)
		if err := rawstore.On(t.Store).Reset(t.Context(), []rawstore.Charge{t.charge(name, 1)}); err != nil {
			t.Fatal(err)
		}
		if t.Exact || since.reset < time.Second {
			t.Advance(since.reset)
		}
		t.rule.Window, t.rule.Resolution = since.window, resolution*time.Duration(since.window/time.Second)/60
		second := t.admit(t.charge(name, 6), 4)
		for range 2 {
			t.refund(t.charge(name, 4), first)
			t.left(name, 4)
		}
		if !isQueue(&t.rule) {
			t.refund(t.charge(name, 6), second)
			t.left(name, 10)
		}
	}
}

func refundOfNothing(t *trial) {
	t.refund(t.charge("k", 5), terms.Result{At: t.Now()})
	if r := t.peek(t.charge("k", 1))[0]; r != (terms.Result{Allowed: true, Remaining: 10}) {
		t.Errorf("got %+v, want a whole limit", r)
	}
	t.admit(t.charge("k", 10), 0)
	t.deny(t.charge("k", 1), 0)
}

func reset(t *trial) {
	names := []string{"k", "k*", "*", "k:", "kk"}
	for _, name := range names {
		t.admit(t.charge(name, 4), 6)
	}
	for i, name := range []string{"k*", "*", "k"} {
		if err := rawstore.On(t.Store).Reset(t.Context(), []rawstore.Charge{t.charge(name, 1)}); err != nil {
			t.Fatal(err)
		}
		t.left(name, 10)
		t.left("k:", 6)
		t.left("kk", 6)
		if i == 0 {
			t.left("k", 6)
			t.left("*", 6)
		}
	}
	if err := rawstore.On(t.Store).Reset(t.Context(), []rawstore.Charge{t.charge("k:", 1), t.charge("kk", 1), t.charge("new", 1)}); err != nil {
		t.Fatal(err)
	}
	t.left("k:", 10)
	t.left("kk", 10)
}
