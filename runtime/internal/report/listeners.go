package report

import (
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rategen/rategen/runtime/internal/findings"
	"github.com/rategen/rategen/runtime/observe"
)

// Listeners are the limiters on a store, to all of which it reports. The zero value has none.
type Listeners struct{ group Group[*Events] }

// NoEvents are the events of no limiter.
var NoEvents = NewEvents(nil)

// Events returns those that reach the limiters.
func (l *Listeners) Events() *Events { return l.group.All(NoEvents) }

// Add adds the events of a limiter, and reports whether it is the first one.
func (l *Listeners) Add(e *Events) (first bool) {
	n := l.group.Add(e, joinEvents)
	if n >= manyLimiters {
		e.tellMany("")
	}
	return n == 1
}

// Remove removes the events of a limiter.
func (l *Listeners) Remove(e *Events) { l.group.Remove(e, joinEvents) }

// Any reports whether there are any.
func (l *Listeners) Any() bool { return l.group.Len() > 0 }

// joinEvents returns events that report to several limiters: to the list of each, once to each of
// their loggers, and once to each of their observers.
func joinEvents(each []*Events) *Events {
	var lists []*findings.List
	var loggers []*slog.Logger
	var observers []*observe.Observer
	for _, e := range each {
		lists, loggers, observers = append(lists, e.Log.Lists...), append(loggers, e.Log.Loggers...),
			append(observers, e.Observers...)
	}
	all := NewEvents(lists, Distinct(loggers)...)
	for _, o := range Distinct(observers) {
		all.Observe(o)
	}
	return all
}

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

// Len returns how many members there are.
func (g *Group[M]) Len() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.members)
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
