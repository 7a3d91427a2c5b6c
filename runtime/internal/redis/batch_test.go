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

// TestGathered has calls of tenants of two keys come in turn, with others between them, and wants those of a key to
// stand together as far as no other call would be passed, and each caller to find its own.
func TestGathered(t *testing.T) {
	b := batches.New().(*batch)
	arrives := func(key, tenant string) {
		w := waiting(script.Take, key, 1)
		c := &w.Calls[0].Charges[0]
		if tenant != "" {
			c.Algorithm, c.Param, c.Tenant, c.Weight = algorithm.DividedTokens, 10, []byte(tenant), 1
		}
		b.waiters = append(b.waiters, w)
	}
	for _, name := range []string{"b1", "a1", "b2", "a2", "b1", "c", "b3", "a3", "a1", "c", "b1", "b4", "a4", "b5"} {
		arrives(name[:1], name[1:])
	}
	b.load()
	g := b.groups[0]
	var got []string
	for i := range g.calls {
		c := &g.calls[i].Charges[0]
		got = append(got, string(c.Key)+string(c.Tenant))
	}
	if want := []string{"a1", "a2", "b1", "b2", "c", "a3", "a4", "b3", "b4", "b5"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for i, w := range b.waiters {
		c := &w.Calls[0].Charges[0]
		if name := string(c.Key) + string(c.Tenant); name != got[g.origin[i].call] {
			t.Errorf("%s finds what %s does", name, got[g.origin[i].call])
		}
	}
	for i, name := range got {
		if want := map[string]int64{"b1": 3, "a1": 2, "c": 2}[name]; g.times[i] != max(1, want) {
			t.Errorf("%s stands for %d", name, g.times[i])
		}
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
