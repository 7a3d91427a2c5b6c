package main

import "testing"

// TestBudgetFaults wants each way to be found in which a budget may be used by too much, or
// cannot be used.
func TestBudgetFaults(t *testing.T) {
	for _, test := range []struct {
		name           string
		budget         budget
		killed         bool
		over, spurious int
	}{
		{"all of it", budget{max: 1000, paid: 700, sure: 700, charged: 700, rest: 300}, false, 0, 0},
		{"a unit that came back", budget{max: 1000, paid: 700, sure: 700, charged: 699, rest: 301}, false, 1, 0},
		{"a unit that is held", budget{max: 1000, paid: 700, sure: 700, charged: 701, rest: 299}, false, 0, 1},
		{"a unit that nobody can use", budget{max: 1000, paid: 700, sure: 700, charged: 700, rest: 299}, false, 0, 1},
		{"a unit too much", budget{max: 1000, paid: 700, sure: 700, charged: 700, rest: 301}, false, 1, 0},
		{"what came back of a process that was killed", budget{max: 1000, paid: 700, sure: 500, charged: 600, rest: 400}, true, 0, 0},
		{"too much of that", budget{max: 1000, paid: 700, sure: 500, charged: 499, rest: 501}, true, 1, 0},
		{"a message that it has not written down", budget{max: 1000, paid: 700, sure: 500, charged: 705, rest: 295}, true, 0, 0},
		{"what it held", budget{max: 1000, paid: 700, sure: 500, charged: 706, rest: 294}, true, 0, 1},
	} {
		if over, spurious := test.budget.faults(test.killed); over != test.over || spurious != test.spurious {
			t.Errorf("%s: %d over and %d spurious", test.name, over, spurious)
		}
	}
}
