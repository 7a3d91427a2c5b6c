package runtime

import (
	"bytes"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestMemoryTable compares the table with a map of Go. Its keys have few
// different hashes, so that they stand in each other's places and across the
// end of the slots, and are short and long.
func TestMemoryTable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var table memoryTable
		want := make(map[string]int64)
		hashes := rapid.SliceOfN(rapid.Uint64(), 1, 5).Draw(t, "hashes")
		hash := func(n int) uint64 { return hashes[n%len(hashes)] }
		key := func(n int) []byte {
			return append(bytes.Repeat([]byte{'k'}, n%3*(shortKey-1)/2), strconv.Itoa(n)...)
		}
		check := func(n int) int {
			i := table.find(hash(n), key(n))
			if count, ok := want[string(key(n))]; ok != (i >= 0) || ok && table.slots[i].entry.count != count {
				t.Fatalf("key %d is at %d, want one: %v", n, i, ok)
			}
			return i
		}
		for step := range rapid.IntRange(1, 200).Draw(t, "steps") {
			n := rapid.IntRange(0, 40).Draw(t, "key")
			switch i := check(n); {
			case i < 0:
				e := table.add(hash(n), key(n))
				if diff := cmp.Diff(memoryState{size: e.size}, e.memoryState, cmp.AllowUnexported(memoryState{})); diff != "" {
					t.Fatalf("a new state (-want +got):\n%s", diff)
				}
				e.count = int64(step)
				want[string(key(n))] = e.count
			case rapid.Bool().Draw(t, "remove"):
				table.remove(i)
				delete(want, string(key(n)))
			case rapid.Bool().Draw(t, "clear"):
				table.slots[i].entry.clear()
				want[string(key(n))] = 0
			}
			if table.count != len(want) || 8*table.count > 7*len(table.slots) {
				t.Fatalf("%d keys in %d slots, want %d keys", table.count, len(table.slots), len(want))
			}
		}
		for n := range 41 {
			check(n)
		}
	})
}
