package report

import (
	"slices"
	"testing"
)

// TestGroup wants members to be joined as they come and go, and to be counted.
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
		if members := g.Add(n, sum); members != i+1 {
			t.Errorf("%d members after %d", members, i+1)
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
	if g.Add(1, sum) != 1 {
		t.Error("who comes when all have gone is not the first")
	}
}
