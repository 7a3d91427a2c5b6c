package storetest

import (
	"fmt"
	"time"

	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rawstore"
)

// leaves returns when a charge that was just made frees its room, by the definition of the
// rule's algorithm, if nothing else was charged. Of a counter only the store knows that.
func (t *trial) leaves(c rawstore.Charge, r terms.Result) int64 {
	window, at := c.Rule.Window.Microseconds(), r.At
	if isCounter(c.Rule) {
		if t.Exact {
			at = t.Now()
		}
		return at + r.ResetAfter.Microseconds()
	}
	if isQueue(c.Rule) {
		return at // the end of its turn
	}
	if isBucket(c.Rule) {
		return at + (c.Cost*window+c.Max-1)/c.Max
	}
	return at + window
}

// timed takes a charge and returns its result with bounds of its time.
func (t *trial) timed(c rawstore.Charge) (r terms.Result, after, before int64) {
	t.Helper()
	after = t.Now()
	r = t.take(c)[0]
	return r, after, t.Now()
}

// window wants a limit to be whole again when its only charge has left, and RetryAfter to say
// when. On a clock that runs it is as exact as the bounds of the time of the denial.
func window(t *trial) {
	t.rule.Window = 200 * time.Millisecond
	for _, name := range []string{"1st", "2nd", "3rd", "4th", "5th"} {
		whole := t.charge(name, 10)
		charged := t.admit(whole, 0)
		leave := t.leaves(whole, charged)
		denied, after, before := t.timed(whole)
		if denied.Allowed || before >= leave {
			if before < leave {
				t.Fatalf("admitted at most %d µs after a whole window's cost: %+v", before-charged.At, denied)
			}
			continue // the machine slept: once more
		}
		retry := denied.RetryAfter.Microseconds()
		if retry < leave-before || retry > leave-after {
			t.Errorf("retry after %d µs, want from %d to %d", retry, leave-before, leave-after)
		}
		if reset := denied.ResetAfter.Microseconds(); reset < leave-before || reset > leave-after {
			t.Errorf("reset after %d µs, want from %d to %d", reset, leave-before, leave-after)
		}
		t.Advance(time.Duration(leave-t.Now()) * time.Microsecond)
		t.admit(whole, 0)
		return
	}
	t.Error("no denial within a window in five tries")
}

// retryAfter wants a denied call to be admitted when it was told to come back.
func retryAfter(t *trial) {
	t.rule.Window = 200 * time.Millisecond
	c := t.charge("k", 10)
	t.take(c)
	// On a clock that runs part of it may have been freed.
	c.Cost = 7
	if r := t.take(c)[0]; !r.Allowed {
		t.Advance(r.RetryAfter)
		if r = t.take(c)[0]; !r.Allowed {
			t.Errorf("denied after RetryAfter: %+v", r)
		}
	}
}

// retryExact wants every denied cost to be denied one microsecond before
// RetryAfter, and admitted then.
func retryExact(t *trial) {
	for _, window := range []time.Duration{100 * time.Millisecond, time.Hour} {
		t.rule.Window = window
		for _, max := range []int64{10, 4} {
			for cost := int64(1); cost <= max; cost += int64(t.every(3)) {
				c := t.charge(fmt.Sprint(window, max, cost), cost)
				for _, step := range []time.Duration{0, 1, 1, 777, 9_999, 12_345, 100} {
					t.Advance(step * time.Microsecond)
					t.take(withCost(c, 1+int64(step)%2))
				}
				t.Advance(window / 7)
				c.Max = max
				r := t.peek(c)[0]
				if r.Allowed {
					continue
				}
				t.Advance(r.RetryAfter - time.Microsecond)
				// The key of a bucket whose max was lowered is gone when it
				// would have been empty at its old rate, which may be sooner.
				early := t.peek(c)[0]
				if isBucket(&t.rule) && max < t.rule.Max {
				} else if early.Allowed || early.RetryAfter != time.Microsecond {
					t.Errorf("window %v, max %d, cost %d: 1 µs before RetryAfter of %v: %+v", window, max, cost, r.RetryAfter, early)
				}
				t.Advance(time.Microsecond)
				if due := t.peek(c)[0]; !due.Allowed {
					t.Errorf("window %v, max %d, cost %d: at RetryAfter of %v: %+v", window, max, cost, r.RetryAfter, due)
				}
			}
		}
	}
}

// moreExact wants a charge that leaves nothing to say when there is room for one more, alone and
// beside another limit, whatever came before it and went back.
func moreExact(t *trial) {
	t.rule.Window = 100 * time.Millisecond
	for last := int64(1); last <= 10; last += int64(t.every(3)) {
		for _, together := range []bool{false, true} {
			c, other := t.charge(fmt.Sprint(last, together), last), t.charge(fmt.Sprint("other", last), 1)
			t.Advance(7 * time.Microsecond)
			for left := 10 - last; left > 0; left-- {
				t.take(withCost(c, 1))
				t.Advance(time.Duration(left) * 3_456 * time.Microsecond)
			}
			for i, then := range []time.Duration{0, 0, 200 * time.Millisecond} {
				t.Advance(then)
				charges := []rawstore.Charge{withCost(c, t.peek(withCost(c, 1))[0].Remaining)}
				if together {
					charges = append(charges, other)
				}
				r := t.take(charges...)[0]
				next := t.peek(withCost(c, 1))[0]
				if !r.Allowed || r.Remaining != 0 || r.MoreAfter <= 0 || r.MoreAfter != next.RetryAfter || r.RetryAfter != 0 {
					t.Fatalf("last cost %d, charge %d: %+v, and then %+v", last, i, r, next)
				}
				t.Advance(r.MoreAfter)
			}
		}
	}
}

// windowEdge wants the window to be (t-W, t].
func windowEdge(t *trial) {
	t.rule.Window = time.Second
	c := t.charge("k", 10)
	leave := t.leaves(c, t.admit(c, 0))
	t.Advance(time.Duration(leave-t.Now()-1) * time.Microsecond)
	t.deny(c, t.peek(c)[0].Remaining)
	t.Advance(time.Microsecond)
	t.admit(c, 0)

	// Two events a microsecond apart leave a microsecond apart.
	if !isLog(&t.rule) || t.rule.Resolution > 0 {
		return
	}
	t.admit(t.charge("two", 9), 1)
	t.Advance(time.Microsecond)
	t.admit(t.charge("two", 1), 0)
	t.Advance(time.Second - 2*time.Microsecond)
	t.left("two", 0)
	t.Advance(time.Microsecond)
	t.left("two", 9)
	t.Advance(time.Microsecond)
	t.left("two", 10)
}

// bucketEdge wants a bucket to hold the events up to its last microsecond, and
// them to leave together, a window after that.
func bucketEdge(t *trial) {
	t.rule.Window = time.Second
	advanceTo := func(at int64) { t.Advance(time.Duration(at-t.Now()) * time.Microsecond) }
	// last charges a call and returns the last microsecond of its bucket.
	last := func(left int64) int64 {
		return t.Now() + t.admit(t.charge("k", 1), left).ResetAfter.Microseconds() - 1_000_000
	}
	first := last(9)
	advanceTo(first)
	if at := last(8); at != first {
		t.Errorf("the last microsecond: its bucket ends at %d, want %d", at, first)
	}
	advanceTo(first + 1)
	next := last(7)
	if next <= first {
		t.Errorf("the first microsecond of the next: its bucket ends at %d, like the one before", next)
	}
	advanceTo(first + 1_000_000 - 1)
	t.left("k", 7)
	advanceTo(first + 1_000_000)
	t.left("k", 9)
	advanceTo(next + 1_000_000 - 1)
	t.left("k", 9)
	advanceTo(next + 1_000_000)
	t.left("k", 10)
}

// clockStepsBack wants time never to be before the newest event: otherwise an
// event after the step would leave before those that it was counted with.
func clockStepsBack(t *trial) {
	t.rule.Window = time.Second
	first := t.admit(t.charge("early", 5), 5)
	t.Advance(-700 * time.Millisecond)
	second := t.admit(t.charge("early", 5), 0)
	if second.At < first.At {
		t.Errorf("charged at %d, after a charge at %d", second.At, first.At)
	}
	whole := t.charge("early", 10)
	t.Advance(time.Duration(t.leaves(whole, second)-1-t.Now()) * time.Microsecond)
	t.deny(whole, t.peek(whole)[0].Remaining)
	t.Advance(time.Microsecond)
	t.admit(whole, 0)

	t.admit(t.charge("k", 10), 0)
	for _, back := range []time.Duration{time.Microsecond, time.Millisecond, 700 * time.Millisecond} {
		t.Advance(-back)
		r := t.deny(t.charge("k", 10), 0)
		t.Advance(r.RetryAfter - time.Microsecond)
		t.deny(t.charge("k", 10), t.peek(t.charge("k", 10))[0].Remaining)
		t.Advance(time.Microsecond)
		t.admit(t.charge("k", 10), 0)
	}
}

func shortWindows(t *trial) {
	for _, window := range []time.Duration{time.Millisecond, 1500 * time.Microsecond, 10 * time.Millisecond, 999 * time.Millisecond} {
		t.rule.Window = window
		if t.rule.Resolution > 0 {
			t.rule.Resolution = window / 10
		}
		c := t.charge(window.String(), 10)
		for range 5 {
			leave := t.leaves(c, t.admit(c, 0))
			t.deny(c, 0)
			t.Advance(time.Duration(leave-t.Now()) * time.Microsecond)
		}
	}
}

// queue wants calls to be told delays that space them evenly, and those that
// would wait for too long to be denied.
func queue(t *trial) {
	t.rule.Window = time.Second
	for i := range 5 {
		c := t.charge("k", 1)
		c.Wait = 400 * time.Millisecond
		if r := t.admit(c, 9-int64(i)); r.Delay != time.Duration(i)*100*time.Millisecond {
			t.Errorf("call %d: delay %v", i, r.Delay)
		}
	}
	c := t.charge("k", 1)
	c.Wait = 400 * time.Millisecond
	if r := t.deny(c, 5); r.RetryAfter != 100*time.Millisecond {
		t.Errorf("got %+v, want a retry after 100ms", r)
	}
	c.Wait = 500 * time.Millisecond
	t.admit(c, 4)
}

// line wants a queue without a burst to be as long as the wait allows.
func line(t *trial) {
	rule := t.rule
	rule.Window, rule.Max, rule.Wait = time.Second, 1, 3*time.Second
	c := t.charge("k", 1)
	c.Rule, c.Max, c.Wait = &rule, rule.Max, rule.Wait
	for i := range 4 {
		if r := t.admit(c, 3-int64(i)); r.Delay != time.Duration(i)*time.Second {
			t.Errorf("call %d: delay %v", i, r.Delay)
		}
	}
	if r := t.deny(c, 0); r.RetryAfter != time.Second {
		t.Errorf("got %+v, want a retry after a second", r)
	}
}
