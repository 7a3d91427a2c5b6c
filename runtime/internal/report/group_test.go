package report

import (
	"slices"
	"testing"
)

// TestGroup wants members to be joined as they come and go, and the first to be known as that.
func TestGroup(t *testing.T) {
	var g Group[int]
	sum := func(each []int) (sum int) {
		for _, n := range each {
			sum += n
		}
		return sum
	}
	got := []int{g.All(7)} // nobody has been a member
	for i, n := range []int{1, 2, 4} {
		if first := g.Add(n, sum); first != (i == 0) {
			t.Errorf("member %d is the first: %v", i, first)
		}
		got = append(got, g.All(7))
	}
	for _, n := range []int{2, 2, 1, 4} { // one leaves twice
		g.Remove(n, sum)
		got = append(got, g.All(7))
	}
	if want := []int{7, 1, 3, 7, 5, 5, 4, 0}; !slices.Equal(got, want) {
		t.Errorf("joined %v, want %v", got, want)
	}
	if !g.Add(1, sum) {
		t.Error("who comes when all have gone is not the first")
	}
}
