package contest

import (
	"slices"
	"testing"
)

func TestMedian(t *testing.T) {
	for _, test := range []struct {
		numbers []float64
		want    float64
	}{
		{nil, 0},
		{[]float64{3}, 3},
		{[]float64{9, 1, 5}, 5},
		{[]float64{4, 1, 100, 2}, 3},
	} {
		before := slices.Clone(test.numbers)
		if got := Median(test.numbers); got != test.want {
			t.Errorf("median of %v: got %v, want %v", test.numbers, got, test.want)
		}
		if !slices.Equal(before, test.numbers) {
			t.Errorf("the numbers %v are now %v", before, test.numbers)
		}
	}
}

func TestOrder(t *testing.T) {
	first := order(0, 11)
	if slices.Equal(first, order(1, 11)) {
		t.Error("two rounds have one order")
	}
	slices.Sort(first)
	for i, n := range first {
		if i != n {
			t.Fatalf("not everybody has a turn: %v", first)
		}
	}
}

func TestCaseString(t *testing.T) {
	for _, test := range []struct {
		c    Case
		want string
	}{
		{Case{1, 1000, Distinct}, "1 caller, 1,000 keys admitted"},
		{Case{64, 100_000, Full}, "64 callers, 100,000 keys, all denied"},
		{Case{256, 1, Hot}, "256 callers, one hot key admitted"},
	} {
		if got := test.c.String(); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}
