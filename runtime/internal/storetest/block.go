package storetest

import (
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rawstore"
	"github.com/rategen/rategen/runtime/rule"
)

// blocked takes one charge, which a block must deny, and returns its RetryAfter.
func (t *trial) blocked(c rawstore.Charge) time.Duration {
	t.Helper()
	r := t.deny(c, 0)
	if !r.Blocked || r.ResetAfter < r.RetryAfter && r.ResetAfter < c.Rule.Block/2 {
		t.Fatalf("cost %d: got %+v, want it denied by a block", c.Cost, r)
	}
	return r.RetryAfter
}

// free wants a limit to have that much left, and no block.
func (t *trial) free(name string, want int64) {
	t.Helper()
	t.left(name, want)
	if r := t.peek(t.charge(name, 1))[0]; r.Blocked {
		t.Fatalf("%s: got %+v, want no block", name, r)
	}
}

// block wants the first denial to block its key, and no other key, with later tries
// and peeks changing nothing.
func block(t *trial) {
	t.rule.Block = time.Hour
	t.admit(t.charge("k", 8), 2)
	if r := t.peek(t.charge("k", 5))[0]; r.Allowed || r.Blocked || r.Remaining != 2 {
		t.Errorf("a peek before the denial: got %+v, want a plain denial", r)
	}
	t.admit(t.charge("k", 1), 1)
	if rest := t.blocked(t.charge("k", 2)); rest < t.rule.Block {
		t.Errorf("the denial that blocks: retry after %v, want at least %v", rest, t.rule.Block)
	}
	last := t.rule.Block
	for range 5 {
		rest := t.blocked(t.charge("k", 1)) // there is room for it
		if rest > last {
			t.Errorf("retry after %v, and %v before", rest, last)
		}
		last = rest
		peeked := t.peek(t.charge("k", 1))[0]
		if peeked.Allowed || !peeked.Blocked || peeked.Remaining != 0 || peeked.RetryAfter > t.rule.Block {
			t.Errorf("peek: got %+v, want the block", peeked)
		}
	}
	if last < t.rule.Block/2 {
		t.Errorf("retry after %v, want the rest of %v", last, t.rule.Block)
	}
	t.free("other", 10)
	t.admit(t.charge("other", 10), 0)
}

// blockEdge wants a block to end to the microsecond, however often it was tried
// meanwhile, and what is still in the window to count then.
func blockEdge(t *trial) {
	for _, c := range []struct {
		name          string
		window, block time.Duration
	}{
		{"shorter", time.Hour, time.Minute},
		{"longer", time.Second, time.Hour},
		{"shortest", time.Second, time.Millisecond},
		{"longest", time.Second, rule.MaxWindow},
	} {
		t.rule.Window, t.rule.Block = c.window, c.block
		t.admit(t.charge(c.name, 9), 1)
		t.blocked(t.charge(c.name, 10))
		step := (c.block / 7).Truncate(time.Microsecond)
		for range 3 {
			t.Advance(step)
			t.blocked(t.charge(c.name, 10))
			t.blocked(t.charge(c.name, 1))
		}
		t.Advance(c.block - 3*step - time.Microsecond)
		if rest := t.blocked(t.charge(c.name, 1)); rest != time.Microsecond {
			t.Errorf("%s: retry after %v, a microsecond before the end", c.name, rest)
		}
		t.Advance(time.Microsecond)
		left := int64(10)
		if c.block < c.window/2 {
			left = t.peek(t.charge(c.name, 1))[0].Remaining
			if left == 0 || left > 2 {
				t.Errorf("%s: %d left at the end, want what was left before", c.name, left)
			}
		}
		t.free(c.name, left)
		t.admit(t.charge(c.name, left), 0)
		if rest := t.blocked(t.charge(c.name, 1)); rest < c.block { // another one
			t.Errorf("%s: retry after %v, want at least %v", c.name, rest, c.block)
		}
	}
}

// blockEdgeOfSeveral wants the block of a call with several limits to end when it
// was to end, however often the call was tried meanwhile.
func blockEdgeOfSeveral(t *trial) {
	t.rule.Window, t.rule.Block = time.Second, time.Hour
	t.admit(t.charge("full", 10), 0)
	for range 4 {
		if r := t.take(t.charge("other", 1), t.charge("full", 10))[1]; !r.Blocked {
			t.Errorf("got %+v, want it blocked", r)
		}
		t.Advance(time.Hour / 4)
	}
	if r := t.take(t.charge("other", 1), t.charge("full", 10)); !r[1].Allowed || r[0].Remaining != 9 {
		t.Errorf("after the block: got %+v, want the call admitted", r)
	}
}

// blockRetry wants the RetryAfter of a denial to be the moment from which the call
// is admitted, be that the end of the block or later.
func blockRetry(t *trial) {
	t.rule.Window = time.Second
	for _, block := range []time.Duration{time.Millisecond, 300 * time.Millisecond, 5 * time.Second} {
		t.rule.Block = block
		c := t.charge(block.String(), 10)
		t.admit(c, 0)
		t.Advance(100 * time.Millisecond)
		rest := t.blocked(c)
		if rest < block {
			t.Errorf("block %v: retry after %v", block, rest)
		}
		t.Advance(rest - time.Microsecond)
		if r := t.peek(c)[0]; r.Allowed || r.RetryAfter != time.Microsecond {
			t.Errorf("block %v: a microsecond before the RetryAfter of %v: %+v", block, rest, r)
		}
		t.Advance(time.Microsecond)
		t.admit(c, 0)
	}
}

// blockAgain wants a denial after a block to begin another one, on a key to which
// nothing was charged in between.
func blockAgain(t *trial) {
	t.rule.Window, t.rule.Block = time.Hour, time.Second
	t.admit(t.charge("k", 10), 0)
	for range 3 {
		t.blocked(t.charge("k", 10))
		t.Advance(time.Second)
		if r := t.peek(t.charge("k", 10))[0]; r.Allowed || r.Blocked {
			t.Fatalf("after the block: got %+v, want a plain denial", r)
		}
	}
	t.Advance(2 * t.rule.Window)
	t.free("k", 10)
}

// blockOfSeveral wants a call to block at the limits that have no room for it, and
// a shadow limit neither to begin a block nor to heed one.
func blockOfSeveral(t *trial) {
	t.rule.Block = time.Hour
	t.admit(t.charge("full", 10), 0)
	results := t.take(t.charge("a", 1), t.charge("full", 1), t.charge("b", 1))
	if results[0].Blocked || !results[1].Blocked || results[2].Blocked || results[1].RetryAfter < time.Hour {
		t.Fatalf("got %+v, want only the second blocked", results)
	}
	t.free("a", 10)
	t.free("b", 10)
	t.blocked(t.charge("full", 1))
	t.admit(t.charge("some", 8), 2)
	t.blocked(t.charge("some", 3))
	results = t.take(t.charge("a", 1), t.charge("some", 1)) // for which there is room
	if results[0].Blocked || results[0].At != 0 || !results[1].Blocked || results[1].Allowed || results[1].Remaining != 0 {
		t.Errorf("beside a blocked limit with room: got %+v", results)
	}

	plain := t.charge("plain", 10)
	plain.Rule.Block = 0
	t.admit(plain, 0)
	t.admit(t.charge("own", 10), 0)
	results = t.take(plain, t.charge("own", 1))
	if results[0].Allowed || results[0].Blocked || !results[1].Blocked {
		t.Errorf("beside a limit without a block: got %+v, want only the second blocked", results)
	}

	t.admit(t.charge("shadow", 7), 3)
	ghost := t.charge("shadow", 4)
	ghost.Rule.Mode = runtime.ModeShadow
	for range 2 {
		results = t.take(ghost, t.charge("a", 1))
		if results[0].Allowed || results[0].Blocked || !results[1].Allowed {
			t.Fatalf("beside a shadow without room: got %+v", results)
		}
	}
	if r := t.take(ghost)[0]; r.Allowed || r.Blocked {
		t.Errorf("a shadow without room: got %+v", r)
	}
	t.free("shadow", 3)
	t.blocked(t.charge("shadow", 4))
	ghost.Cost = 1
	if r := t.take(ghost)[0]; !r.Allowed || r.Blocked || r.Remaining != 2 || r.At == 0 {
		t.Errorf("a shadow of a blocked limit: got %+v, want it charged", r)
	}
	t.blocked(t.charge("shadow", 1)) // for which there is room
	if r := t.take(ghost, t.charge("a", 1))[0]; !r.Allowed || r.Blocked || r.Remaining != 1 || r.At == 0 {
		t.Errorf("a shadow of a blocked limit, beside another: got %+v, want it charged", r)
	}
	t.blocked(t.charge("shadow", 1))
	if err := rawstore.On(t.Store).Reset(t.Context(), []rawstore.Charge{t.charge("shadow", 1)}); err != nil {
		t.Fatal(err)
	}
	t.free("shadow", 10)
	t.admit(t.charge("shadow", 10), 0)
}

// blockInBatch wants the first call of a batch that has no room to begin the block
// for those behind it.
func blockInBatch(t *trial) {
	t.rule.Block = time.Hour
	calls := t.takeAll(
		callOf(t.charge("k", 6)), callOf(t.charge("k", 3)), callOf(t.charge("k", 2)),
		callOf(t.charge("k", 1)), callOf(t.charge("other", 1)), callOf(t.charge("k", 1)))
	for i, want := range []bool{true, true, false, false, true, false} {
		if r := t.results(calls[i])[0]; r.Allowed != want || r.Blocked == want {
			t.Errorf("call %d: got %+v, want it admitted: %v", i, r, want)
		}
	}
}

// blockAndRefund wants a refund neither to end a block nor to lose what it gives back.
func blockAndRefund(t *trial) {
	t.rule.Block = time.Hour
	for _, cost := range []int64{3, 10} { // a part of what was charged, and all of it
		name := map[int64]string{3: "part", 10: "all"}[cost]
		t.rule.Window = 10 * time.Hour
		first := t.admit(t.charge(name, cost), 10-cost)
		if cost < 10 {
			t.Advance(20 * time.Millisecond) // into another slice
			t.admit(t.charge(name, 10-cost), 0)
		}
		t.blocked(t.charge(name, 1))
		t.refund(t.charge(name, cost), first)
		t.blocked(t.charge(name, 1))
		t.Advance(time.Minute)
		if rest := t.blocked(t.charge(name, 1)); rest > time.Hour-time.Minute+time.Second {
			t.Errorf("%s: retry after %v, a minute into the block", name, rest)
		}
		t.Advance(time.Hour)
		if r := t.peek(t.charge(name, 1))[0]; !r.Allowed || r.Blocked || r.Remaining < cost {
			t.Errorf("%s: got %+v, want %d back when the block is over", name, r, cost)
		}
	}
}

// blockOfChangedLimit wants a block to hold whatever the max and the window are by
// now, and to be as long as it was at its beginning.
func blockOfChangedLimit(t *trial) {
	t.rule.Block = time.Hour
	t.admit(t.charge("k", 10), 0)
	t.blocked(t.charge("k", 1))
	for _, c := range []rawstore.Charge{t.charge("k", 1), t.charge("k", 1), t.charge("k", 1)} {
		c.Max = 100
		c.Rule.Block = 2 * time.Hour
		if rest := t.blocked(c); rest > time.Hour {
			t.Errorf("retry after %v, want no more than the block that began", rest)
		}
		if c.Rule.Buckets == rule.LayeredBuckets(6, 10) {
			continue // its keys name the window
		}
		c.Rule.Window *= 2
		t.blocked(c)
	}
}

// blockAndSettle wants what a call has cost in the end to be charged to a blocked
// limit, or given back, without an end to the block.
func blockAndSettle(t *trial) {
	t.rule.Block = time.Minute
	first := t.admit(t.charge("less", 8), 2)
	t.blocked(t.charge("less", 3))
	t.settle(t.charge("less", 8), first, 1)
	t.blocked(t.charge("less", 1))
	first = t.admit(t.charge("more", 2), 8)
	t.blocked(t.charge("more", 9))
	t.settle(t.charge("more", 2), first, 5)
	t.blocked(t.charge("more", 1)) // there is room for it
	t.Advance(time.Minute)
	t.free("less", 9)
	t.free("more", 5)
	first = t.admit(t.charge("debt", 2), 8)
	t.settle(t.charge("debt", 2), first, 50)
	if rest := t.blocked(t.charge("debt", 1)); rest <= t.rule.Block {
		t.Errorf("retry after %v, before the debt is paid", rest)
	}
}
