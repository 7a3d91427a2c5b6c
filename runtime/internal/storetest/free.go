package storetest

import (
	"time"

	"github.com/rategen/rategen/runtime/internal/terms"
)

// passFree takes and peeks at a call of cost 0, which must pass and charge nothing.
func (t *trial) passFree(name string, left int64) {
	t.Helper()
	c := t.charge(name, 0)
	was := t.peek(t.charge(name, 1))[0]
	for _, r := range []terms.Result{t.peek(c)[0], t.take(c)[0]} {
		if !r.Allowed || r.Remaining != left || r.RetryAfter != 0 || r.At != 0 || r.Mark != 0 || r.Delay != 0 || r.Blocked {
			t.Fatalf("%s: got %+v, want a call of no cost admitted, and %d left", name, r, left)
		}
		if t.Exact && r.ResetAfter != was.ResetAfter {
			t.Fatalf("%s: reset after %v, want %v", name, r.ResetAfter, was.ResetAfter)
		}
	}
	if is := t.peek(t.charge(name, 1))[0]; t.Exact && is != was {
		t.Fatalf("%s: a call of no cost has changed the limit from %+v to %+v", name, was, is)
	}
}

// denyFree takes and peeks at a call of cost 0, which a block must deny for as long as told.
func (t *trial) denyFree(name string, rest time.Duration) {
	t.Helper()
	c := t.charge(name, 0)
	for _, r := range []terms.Result{t.peek(c)[0], t.take(c)[0], t.take(t.charge("beside", 0), c)[1]} {
		if r.Allowed || !r.Blocked || r.Remaining != 0 || r.At != 0 || r.RetryAfter > rest || r.RetryAfter < rest/2 || t.Exact && r.RetryAfter != rest {
			t.Fatalf("%s: got %+v, want a call of no cost blocked for %v", name, r, rest)
		}
	}
}

// freeAndBlock wants calls of cost 0 to be denied while their key is blocked, to the
// microsecond, and else to pass, to charge nothing and to begin no block, however little room
// there is.
func freeAndBlock(t *trial) {
	t.rule.Block = time.Hour
	t.passFree("k", 10)
	first := t.admit(t.charge("k", 4), 6)
	t.passFree("k", 6)
	t.admit(t.charge("k", 6), 0)
	t.passFree("k", 0)
	debtor := t.charge("k", 4)
	t.settle(debtor, first, 54)
	t.passFree("k", 0)

	calls := t.takeAll(
		callOf(t.charge("a", 0)), callOf(t.charge("a", 10)), callOf(t.charge("a", 0)), callOf(t.charge("a", 0)),
		callOf(t.charge("a", 1)), callOf(t.charge("a", 0)), callOf(t.charge("b", 0)))
	for i, want := range []bool{true, true, true, true, false, false, true} {
		if r := t.results(calls[i])[0]; r.Allowed != want || r.Blocked == want || (r.At != 0) != (i == 1) {
			t.Errorf("call %d: got %+v, want it admitted: %v", i, r, want)
		}
	}
	t.denyFree("a", time.Hour)
	results := t.take(t.charge("b", 3), t.charge("a", 0))
	if !results[0].Allowed || results[0].At != 0 || !results[1].Blocked {
		t.Errorf("beside a blocked key: got %+v, want both uncharged", results)
	}
	results = t.take(t.charge("b", 3), t.charge("c", 0))
	if !results[0].Allowed || results[0].At == 0 || results[0].Remaining != 7 || !results[1].Allowed || results[1].At != 0 {
		t.Errorf("beside another limit: got %+v, want that charged alone", results)
	}
	if !t.Exact {
		return
	}
	t.Advance(time.Hour - time.Microsecond)
	t.denyFree("a", time.Microsecond)
	t.Advance(time.Microsecond)
	results = t.take(t.charge("a", 0))
	if !results[0].Allowed || results[0].Blocked {
		t.Errorf("got %+v when the block is over", results[0])
	}
}

// freeAndHold wants calls of cost 0 to be denied while their key is held, and not after that.
// In a queue they pass without a turn.
func freeAndHold(t *trial) {
	t.rule.Hold = true
	t.passFree("k", 10)
	t.admit(t.charge("k", 10), 0)
	t.passFree("k", 0)
	for _, name := range []string{"k", "idle"} {
		t.hold(name, time.Hour)
		t.denyFree(name, time.Hour)
		t.hold(name, 0)
	}
	t.passFree("k", 0)
	t.passFree("idle", 10)
}
