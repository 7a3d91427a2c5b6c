package runtime

import (
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// TestMemoryTable compares the table with a map of Go. Its keys have few
// different hashes, so that they stand in each other's places and across the
// end of the slots.
func TestMemoryTable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var table memoryTable
		want := make(map[string]memoryState)
		hashes := rapid.SliceOfN(rapid.Uint64(), 1, 5).Draw(t, "hashes")
		hash := func(n int) uint64 { return hashes[n%len(hashes)] }
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			n := rapid.IntRange(0, 40).Draw(t, "key")
			key := strconv.Itoa(n)
			i := table.find(hash(n), []byte(key))
			if state, ok := want[key]; ok != (i >= 0) || ok && table.slots[i].state != state {
				t.Fatalf("key %s is at %d, want one: %v", key, i, ok)
			}
			switch {
			case i < 0:
				want[key] = new(memoryLog)
				table.add(hash(n), key, want[key])
			case rapid.Bool().Draw(t, "remove"):
				table.remove(i)
				delete(want, key)
			}
			if table.count != len(want) || table.count > len(table.slots)/2 {
				t.Fatalf("%d keys in %d slots, want %d keys", table.count, len(table.slots), len(want))
			}
		}
		for n := range 41 {
			key := strconv.Itoa(n)
			i := table.find(hash(n), []byte(key))
			if state, ok := want[key]; ok != (i >= 0) || ok && table.slots[i].state != state {
				t.Fatalf("key %s is at %d, want one: %v", key, i, ok)
			}
		}
	})
}
