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

	"github.com/rategen/rategen/runtime/observe"
)

// A list has most findings that last, and remembers mostOver that are over.
const (
	most     = 1_000
	mostOver = 50
)

// fades is after how long a finding is over that must be made again and again.
const fades = time.Minute

// A Finding is something that was declared and does not hold.
type Finding struct {
	observe.Finding
	Until time.Time // zero: it lasts
	// Times is how often it was made, as far as it is made with each call that meets it.
	Times int64
	// Fades says that it is over when it was not made for a minute.
	Fades bool
	// Severe says that limits do not hold.
	Severe bool

	last time.Time
}

// An About is what tells findings apart.
type About struct{ Code, Rule, Detail string }

// A List is the findings of a limiter, or of what a program has beside its limiters. It is safe
// for concurrent use. The zero List is empty.
type List struct {
	mu   sync.Mutex
	each map[About]Finding
	past []Finding // those that ended last are last
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
	if known && before.over(f.last) {
		l.end(before, before.last)
	} else if known {
		before.last = f.last
		before.Times++
		l.each[about] = before
		return false
	}
	if len(l.each) >= most {
		return false
	}
	if l.each == nil {
		l.each = make(map[About]Finding)
	}
	f.Since, f.Times = f.last, 1
	l.each[about] = f
	return true
}

// end moves a finding to those that are over.
func (l *List) end(f Finding, at time.Time) {
	delete(l.each, About{f.Code, f.Rule, f.Detail})
	f.Until = at
	l.past = append(l.past, f)
	l.past = l.past[max(0, len(l.past)-mostOver):]
}

// over reports whether a finding was not made for too long.
func (f *Finding) over(now time.Time) bool { return f.Fades && now.Sub(f.last) >= fades }

// Remove removes the findings of a code for which over returns true.
func (l *List) Remove(code string, over func(Finding) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for about, f := range l.each {
		if about.Code == code && over(f) {
			l.end(f, time.Now())
		}
	}
}

// Past returns the findings that are over, the last ones.
func (l *List) Past() []Finding {
	l.All() // which fade
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.past)
}

// All returns the findings that last, in order.
func (l *List) All() []Finding {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for _, f := range l.each {
		if f.over(now) {
			l.end(f, f.last)
		}
	}
	return slices.SortedFunc(maps.Values(l.each), func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Code, b.Code), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Detail, b.Detail))
	})
}
