package main

import (
	"math/rand/v2"
	"testing"

	"github.com/rategen/rategen/bench/internal/judge"
)

// TestFullestWindow compares fullestWindow with looking at every pair of calls.
func TestFullestWindow(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for trial := range 200 {
		var calls []*judge.SharedRecord
		for range random.IntN(60) {
			start := random.Int64N(300)
			calls = append(calls, &judge.SharedRecord{Start: start, End: start + random.Int64N(20)*random.Int64N(10), Cost: uint8(1 + random.IntN(3))})
		}
		window, most := 1+random.Int64N(100), random.Int64N(30)
		var want int64
		over := 0
		for _, first := range calls {
			inside := int64(0)
			for _, r := range calls {
				if r.Start >= first.Start && r.End < first.Start+window {
					inside += int64(r.Cost)
				}
			}
			if want = max(want, inside); inside > most {
				over++
			}
		}
		used, windows := fullestWindow(calls, window, most)
		if used != want || windows > over || (windows > 0) != (over > 0) {
			t.Fatalf("trial %d: got %d in %d windows, want %d in %d", trial, used, windows, want, over)
		}
	}
}
