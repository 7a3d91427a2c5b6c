package report

import (
	"slices"
	"sync"
	"sync/atomic"
)

// A Group joins those who hear of what happens to a thing that they share. It is safe for
// concurrent use, and reading it takes one atomic load. The zero Group has no members.
type Group[M comparable] struct {
	mu      sync.Mutex
	members []M
	union   atomic.Pointer[M]
}

// All returns what the members were joined to, or none if nobody ever was one.
func (g *Group[M]) All(none M) M {
	if joined := g.union.Load(); joined != nil {
		return *joined
	}
	return none
}

// Add adds a member, joins all anew, and returns how many there are.
func (g *Group[M]) Add(member M, join func(each []M) M) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.members = append(g.members, member)
	g.union.Store(new(join(g.members)))
	return len(g.members)
}

// Remove removes a member, and joins the others anew. It may be called again.
func (g *Group[M]) Remove(member M, join func(each []M) M) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.members, member); i >= 0 {
		g.members = slices.Delete(g.members, i, i+1)
		g.union.Store(new(join(g.members)))
	}
}

// Distinct removes repeated values from s.
func Distinct[T comparable](s []T) []T {
	kept := s[:0]
	for _, v := range s {
		if !slices.Contains(kept, v) {
			kept = append(kept, v)
		}
	}
	return kept
}
