package memstate

import (
	"bytes"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	_ "github.com/rategen/rategen/internal/testkit/seed" // rapid begins there
)

// TestTable compares the table with a map of Go. Its keys have few
// different hashes, so that they stand in each other's places and across the
// end of the slots, and are short and long.
func TestTable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var keys table
		want := make(map[string]int64)
		hashes := rapid.SliceOfN(rapid.Uint64(), 1, 5).Draw(t, "hashes")
		hash := func(n int) uint64 { return hashes[n%len(hashes)] }
		key := func(n int) []byte {
			return append(bytes.Repeat([]byte{'k'}, n%3*(shortKey-1)/2), strconv.Itoa(n)...)
		}
		check := func(n int) int {
			i := keys.find(hash(n), key(n))
			if count, ok := want[string(key(n))]; ok != (i >= 0) || ok && keys.slots[i].entry.count != count {
				t.Fatalf("key %d is at %d, want one: %v", n, i, ok)
			}
			return i
		}
		for step := range rapid.IntRange(1, 200).Draw(t, "steps") {
			n := rapid.IntRange(0, 40).Draw(t, "key")
			i := check(n)
			if i < 0 {
				e := keys.add(hash(n), key(n))
				if diff := cmp.Diff(state{size: e.size, extra: e.extra}, e.state, cmp.AllowUnexported(state{}, entryExtra{})); diff != "" {
					t.Fatalf("a new state (-want +got):\n%s", diff)
				}
				e.count = int64(step)
				want[string(key(n))] = e.count
			} else if rapid.Bool().Draw(t, "remove") {
				keys.remove(i)
				delete(want, string(key(n)))
			} else if rapid.Bool().Draw(t, "clear") {
				keys.slots[i].entry.clear()
				want[string(key(n))] = 0
			}
			if keys.count != len(want) || 8*keys.count > 7*len(keys.slots) {
				t.Fatalf("%d keys in %d slots, want %d keys", keys.count, len(keys.slots), len(want))
			}
		}
		for n := range 41 {
			check(n)
		}
	})
}
