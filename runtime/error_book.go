package runtime

import (
	"sync"
	"sync/atomic"
	"time"
)

// pageErrors is how many errors a page has. A page takes 2 KiB.
const pageErrors = 36

// An errorBook gives each denial an error of its own, of which it takes many at a time
// from the heap. A page of errors lives as long as any of them. A book is used by
// one goroutine at a time.
type errorBook struct {
	page   *[pageErrors]LimitedError
	next   int    // error on the page
	stripe uint32 // of its users in a stripedThrottle
}

// errorBooks has about one book for each processor.
var errorBooks = sync.Pool{New: func() any { return &errorBook{next: pageErrors, stripe: lastStripe.Add(1)} }}

var lastStripe atomic.Uint32

// issue returns an error that nobody else has.
func (b *errorBook) issue() *LimitedError {
	if b.next == pageErrors {
		b.page, b.next = new([pageErrors]LimitedError), 0
	}
	e := &b.page[b.next]
	b.next++
	return e
}

// deny logs the denial that a decision is, about a call that arrived at an instant,
// and returns its caller's error.
func (l *limitedLog) deny(rule *Rule, cost int64, d *Decision, arrived time.Duration) error {
	b := errorBooks.Get().(*errorBook)
	if skipped, ok := l.of(rule).denied.due(arrived, b.stripe); ok {
		l.denied(rule, cost, d, skipped)
	}
	e := b.issue()
	e.Rule, e.Limit, e.Remaining, e.RetryAfter, e.Blocked, e.rule = d.Rule, d.Limit, d.Remaining, d.RetryAfter, d.Blocked, rule
	e.Source = d.Source
	errorBooks.Put(b)
	return e
}
