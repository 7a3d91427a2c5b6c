package report

import (
	"cmp"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rategen/rategen/runtime/internal/findings"
	"github.com/rategen/rategen/runtime/observe"
)

// Listeners are the limiters on a store, to all of which it reports. It is safe for concurrent use, and
// reading it takes one atomic load. The zero value has none.
type Listeners struct {
	mu      sync.Mutex
	members []*Events
	union   atomic.Pointer[Events] // nil: there never was one
}

// NoEvents are the events of no limiter.
var NoEvents = NewEvents(nil)

// Events returns those that reach the limiters.
func (l *Listeners) Events() *Events { return cmp.Or(l.union.Load(), NoEvents) }

// Add adds the events of a limiter, and reports whether it is the first one.
func (l *Listeners) Add(e *Events) (first bool) {
	l.mu.Lock()
	l.members = append(l.members, e)
	l.union.Store(joinEvents(l.members))
	n := len(l.members)
	l.mu.Unlock()
	if n >= manyLimiters {
		e.tellMany("")
	}
	return n == 1
}

// Remove removes the events of a limiter. It may be called again.
func (l *Listeners) Remove(e *Events) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.members, e); i >= 0 {
		l.members = slices.Delete(l.members, i, i+1)
		l.union.Store(joinEvents(l.members))
	}
}

func (l *Listeners) Any() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.members) > 0
}

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
