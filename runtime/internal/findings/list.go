// Package findings lists what a program declares and what does not hold.
//
// It is handed findings as they are made, and told when they are over. It promises that each is
// told once while it lasts, and that a list is bounded. It writes nothing.
package findings

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"
)

// most is how many findings a list has.
const most = 1_000

// fades is after how long a finding is over that must be made again and again.
const fades = time.Minute

// A Finding is something that was declared and does not hold.
type Finding struct {
	Code   string
	Rule   string // or empty
	Detail string // what it is about beside the rule, or empty
	Text   string
	Help   string
	Since  time.Time
	// Fades says that it is over when it was not made for a minute.
	Fades bool

	last time.Time
}

// An About is what tells findings apart.
type About struct{ Code, Rule, Detail string }

// A List is the findings of a limiter, or of what a program has beside its limiters. It is safe
// for concurrent use. The zero List is empty.
type List struct {
	mu   sync.Mutex
	each map[About]Finding
}

// Process are the findings of what belongs to no limiter.
var Process List

// Add adds a finding that was made just now, and reports whether it is new.
func (l *List) Add(f Finding) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	f.last = time.Now()
	about := About{f.Code, f.Rule, f.Detail}
	before, known := l.each[about]
	switch {
	case known && !before.over(f.last):
		before.last = f.last
		l.each[about] = before
		return false
	case !known && len(l.each) >= most:
		return false
	case l.each == nil:
		l.each = make(map[About]Finding)
	}
	f.Since = f.last
	l.each[about] = f
	return true
}

// over reports whether a finding was not made for too long.
func (f *Finding) over(now time.Time) bool { return f.Fades && now.Sub(f.last) >= fades }

// Remove removes the findings of a code for which over returns true.
func (l *List) Remove(code string, over func(Finding) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.each, func(about About, f Finding) bool { return about.Code == code && over(f) })
}

// All returns the findings in order.
func (l *List) All() []Finding {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(l.each, func(_ About, f Finding) bool { return f.over(now) })
	return slices.SortedFunc(maps.Values(l.each), func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Code, b.Code), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Detail, b.Detail))
	})
}
