package report

import (
	"slices"
	"testing"

	"github.com/rategen/rategen/runtime/observe"
)

// TestListeners wants limiters to be joined as they come and go, and to be counted.
func TestListeners(t *testing.T) {
	var l Listeners
	var members []*Events
	for range 3 {
		e := NewEvents(nil)
		e.Observe(new(observe.Observer))
		members = append(members, e)
	}
	heard := func() (which []int) {
		for i, e := range members {
			if slices.Contains(l.Events().Observers, e.Observers[0]) {
				which = append(which, i)
			}
		}
		return which
	}
	if l.Events() != NoEvents || l.Any() {
		t.Error("nobody has been a member")
	}
	for i, e := range members {
		if first := l.Add(e); first != (i == 0) || len(heard()) != i+1 {
			t.Errorf("%v are joined after %d", heard(), i+1)
		}
	}
	for _, step := range []struct {
		leaves int
		stay   []int
	}{{1, []int{0, 2}}, {1, []int{0, 2}}, {0, []int{2}}, {2, nil}} { // one leaves twice
		l.Remove(members[step.leaves])
		if !slices.Equal(heard(), step.stay) || l.Any() != (step.stay != nil) {
			t.Errorf("%v are joined when %d has left, want %v", heard(), step.leaves, step.stay)
		}
	}
	if !l.Add(members[1]) {
		t.Error("who comes when all have gone is not the first")
	}
}
