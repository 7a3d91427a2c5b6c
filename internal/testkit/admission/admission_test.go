package admission

import (
	"math/rand/v2"
	"testing"
)

// TestFullest compares Fullest with looking at every pair of calls.
func TestFullest(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for trial := range 200 {
		var calls []Call
		for range random.IntN(60) {
			start := random.Int64N(300)
			calls = append(calls, Call{Begin: start, End: start + random.Int64N(20)*random.Int64N(10), Cost: int64(1 + random.IntN(3))})
		}
		window, most := 1+random.Int64N(100), random.Int64N(30)
		var want int64
		over := 0
		for _, first := range calls {
			inside := int64(0)
			for _, r := range calls {
				if r.Begin >= first.Begin && r.End < first.Begin+window {
					inside += r.Cost
				}
			}
			want = max(want, inside)
			if inside > most {
				over++
			}
		}
		used, windows := Fullest(calls, window, most)
		if used != want || windows > over || (windows > 0) != (over > 0) {
			t.Fatalf("trial %d: got %d in %d windows, want %d in %d", trial, used, windows, want, over)
		}
	}
}
