package storetest

import (
	"github.com/rategen/rategen/runtime/rawstore"
	"github.com/rategen/rategen/runtime/rule"
)

// amounts wants the largest max to be counted to the last unit, in costs of any size.
func amounts(t *trial) {
	const most, half = rule.MaxAmount, rule.MaxAmount / 2
	t.rule.Max = most
	t.admit(t.charge("k", 1), most-1)
	c := t.charge("k", half)
	first := t.admit(c, half)
	t.deny(t.charge("k", half+1), half)
	second := t.admit(c, 0)
	t.deny(t.charge("k", 1), 0)
	t.refund(c, second)
	t.left("k", half)
	t.settle(c, first, half-1)
	t.admit(t.charge("k", half+1), 0)
	t.deny(t.charge("k", 1), 0)

	t.admit(t.charge("whole", most), 0)
	t.deny(t.charge("whole", most), 0)

	quarter := t.charge("equal", most/4) // four of them leave 3
	calls := make([]rawstore.Call, 5)
	for i := range calls {
		calls[i].Charges = []rawstore.Charge{quarter}
	}
	for i, call := range t.takeAll(calls...) {
		want := max(most-int64(i+1)*(most/4), 3)
		if r := t.results(call)[0]; r.Allowed != (i < 4) || r.Remaining != want {
			t.Errorf("call %d: got %+v, want %d left", i, r, want)
		}
	}

	lowered := t.charge("k", 1)
	lowered.Max = most - 1
	t.deny(lowered, 0)
}

// amountOwed wants a count that settled costs would take above the largest max to stop
// there, and to be exact from there on.
func amountOwed(t *trial) {
	const most = rule.MaxAmount
	t.rule.Max = most
	c := t.charge("k", most-2)
	first := t.admit(c, 2)
	t.settle(c, first, most-1)
	t.left("k", 1)
	small := t.charge("k", 1)
	second := t.admit(small, 0)
	for range 3 {
		t.settle(small, second, most)
		t.deny(small, 0)
	}
	t.settle(c, first, most-7)
	t.left("k", 5)
	t.admit(t.charge("k", 5), 0)
}
