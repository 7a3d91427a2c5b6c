package redis

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/runtime/internal/script"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// waiting returns a waiter for a call on a key.
func waiting(op script.Operation, key string, cost int64) *waiter {
	limit := terms.Terms{Algorithm: algorithm.LogZSet, Window: 1e6, Max: 1e6}
	charge := terms.Charge{Terms: limit, Key: []byte(key), Cost: cost}
	return waiterOf(op, 0, []terms.Call{{Charges: []terms.Charge{charge}}}, charge.Work(), 0)
}

// TestMixed has waiters with every operation share a batch: one script for each operation,
// and room is given back before it is taken. Equal calls that take are merged, whatever
// came between them, and nothing else is.
func TestMixed(t *testing.T) {
	b := batches.New().(*batch)
	for range 10 {
		for _, op := range []script.Operation{script.Take, script.Settle, script.Peek, script.Take, script.Renew} {
			b.waiters = append(b.waiters, waiting(op, "k", 1))
		}
	}
	if taken := b.load(); taken != len(b.waiters) {
		t.Errorf("%d of %d waiters share the batch", taken, len(b.waiters))
	}
	var got []string
	for i, g := range b.groups {
		got = append(got, fmt.Sprint(g.op, " ", len(g.waiters), " in ", len(g.calls)))
		if b.send[i] != g.executions[0] {
			t.Errorf("%s is not sent in this order", g.op)
		}
	}
	if want := []string{"renew 10 in 10", "settle 10 in 10", "take 20 in 1", "peek 10 in 10"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	b.waiters = b.waiters[:1]
	b.load()
	if len(b.groups) != 1 || b.mixed {
		t.Error("the batch is not emptied")
	}
}

// TestFull fills batches with waiters of one cost and wants no batch to be more work than
// it may be, but for one with a single waiter.
func TestFull(t *testing.T) {
	for _, cost := range []int64{1, 2, 10, 100, 500, 1000, 100_000} {
		for _, op := range []script.Operation{script.Take, script.Settle} {
			b := batches.New().(*batch)
			work := int64(0)
			for i := range 200 {
				b.waiters = append(b.waiters, waiting(op, fmt.Sprint(i), cost))
			}
			taken := b.load()
			for _, w := range b.waiters[:taken] {
				work += w.work
			}
			if each := b.waiters[0].work; taken < 1 || taken > 1 && work > terms.MaxWork || work+each <= terms.MaxWork {
				t.Errorf("%s at cost %d: %d calls of %d are %d work, of %d", op, cost, taken, each, work, terms.MaxWork)
			}
		}
	}
}
