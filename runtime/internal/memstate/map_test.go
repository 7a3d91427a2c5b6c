package memstate

import (
	"testing"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// start is some time in microseconds.
const start = int64(1_700_000_000_000_000)

// chargeOf returns a charge of 1 to a limit of 3 in a second.
func chargeOf(a algorithm.Algorithm, key string) *terms.Charge {
	return &terms.Charge{Terms: terms.Terms{Algorithm: a, Window: 1_000_000, Max: 3, Param: param(a)}, Key: []byte(key), Cost: 1}
}

func param(a algorithm.Algorithm) int64 {
	if a.Is(algorithm.Drains) {
		return 3 // the burst
	}
	if a == algorithm.Counter || a == algorithm.LayeredCounter {
		return 10_000 // the width of a bucket
	}
	if a == algorithm.Calendar {
		return start + 1_000_000 // the end of the period
	}
	return 0
}

// TestEveryAlgorithmHasAState has every algorithm count.
func TestEveryAlgorithmHasAState(t *testing.T) {
	t.Parallel()
	for a := range algorithm.Algorithms {
		m := New(64)
		decide := func(commit bool) terms.Result {
			c := chargeOf(a, "k")
			if a == algorithm.Queue {
				c.More = 1_000_000
			}
			if !decide(m, start, c, commit) {
				t.Fatalf("algorithm %d: its own key is another algorithm's", a)
			}
			return c.Result
		}
		whole := decide(false)
		if !whole.Allowed || whole.Remaining != 3 || whole.At != 0 {
			t.Errorf("algorithm %d, a new key: got %+v", a, whole)
		}
		at, mark := int64(0), int64(0)
		for left := int64(2); left >= 0; left-- {
			r := decide(true)
			if at, mark = r.At, r.Mark; !r.Allowed || r.Remaining != left || at == 0 {
				t.Errorf("algorithm %d: got %+v, want %d left", a, r, left)
			}
		}
		if r := decide(true); r.Allowed || r.RetryAfter <= 0 || r.At != 0 {
			t.Errorf("algorithm %d: got %+v, want a refusal", a, r)
		}
		c := chargeOf(a, "k")
		c.Cost, c.At, c.Mark = 3, at, mark
		m.Settle(start, backOf(c))
		if r := decide(false); r.Remaining != 3 {
			t.Errorf("algorithm %d: %d left after all was refunded", a, r.Remaining)
		}
		decide(true)
		if n := m.Len(); n != 1 {
			t.Errorf("algorithm %d: %d keys, want 1", a, n)
		}
		m.Reset([]byte("k"))
		if r := decide(false); r != whole || m.Len() != 0 {
			t.Errorf("algorithm %d, after a reset: got %+v and %d keys", a, r, m.Len())
		}
	}
}

// TestConflict charges a key by one algorithm and then by another, which fails
// if and only if they count in different ways. A forgotten key may change.
func TestConflict(t *testing.T) {
	t.Parallel()
	for a := range algorithm.Algorithms {
		for b := range algorithm.Algorithms {
			m := New(64)
			same := kinds[a] == kinds[b]
			if !decide(m, start, chargeOf(a, "k"), true) {
				t.Fatalf("algorithm %d cannot charge a new key", a)
			}
			if got := decide(m, start, chargeOf(b, "k"), true); got != same {
				t.Errorf("algorithm %d after %d: got %t", b, a, got)
			}
			m.Settle(start, backOf(chargeOf(b, "k"))) // does nothing, or a part of the charges goes
			charges := []terms.Charge{*chargeOf(b, "other"), *chargeOf(b, "k")}
			want := 1
			if same {
				want = -1
			}
			if got := m.DecideAll(start, charges, true); got != want {
				t.Errorf("algorithm %d after %d: conflict %d, want %d", b, a, got, want)
			}
			if got, conflict := m.Len(), !same; conflict && got != 1 {
				t.Errorf("algorithm %d after %d: %d keys, want the second limit to keep the first from being charged", b, a, got)
			}
			if !decide(m, start+10_000_000, chargeOf(b, "k"), true) {
				t.Errorf("algorithm %d on a key that %d charged and that is forgotten: a conflict", b, a)
			}
		}
	}
}

// TestDecideAllocates counts the allocations of decisions about a key that is
// there, with the charges on the stack: none.
func TestDecideAllocates(t *testing.T) {
	m := New(64)
	for a := range algorithm.Algorithms {
		key := []byte{'k', byte(a)}
		one := func(cost int64) {
			c := terms.Charge{Terms: terms.Terms{Algorithm: a, Window: 1_000_000, Max: 3, Param: param(a)}, Key: key, Cost: cost}
			decide(m, start, &c, true)
			m.Settle(start, backOf(&c))
			two := [2]terms.Charge{c, c}
			m.DecideAll(start, two[:1], true)
		}
		one(1)
		one(1)
		one(1)
		if n := testing.AllocsPerRun(100, func() { one(1) }); n != 0 {
			t.Errorf("algorithm %d: %v allocations", a, n)
		}
	}
	missing := func() {
		c := terms.Charge{Terms: terms.Terms{Window: 1_000_000, Max: 3}, Key: []byte("missing"), Cost: 1}
		decide(m, start, &c, false)
	}
	if n := testing.AllocsPerRun(100, missing); n != 0 {
		t.Errorf("a key that is not there: %v allocations", n)
	}
}

// backOf returns what gives a charge back.
func backOf(c *terms.Charge) *terms.Charge {
	back := *c
	back.GiveBack()
	return &back
}

// decide is Take for those who have no use for a flag.
func decide(m *Map, clock int64, c *terms.Charge, commit bool) bool {
	if !commit {
		return m.Peek(clock, c)
	}
	_, _, ok := m.Take(clock, c)
	return ok
}
