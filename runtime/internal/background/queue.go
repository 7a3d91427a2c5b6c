// Package background does work that nobody waits for.
package background

import "sync"

// A Queue has work done in the order in which it was added, in a goroutine that ends when
// there is none: whoever adds some does not wait. The zero Queue is empty.
type Queue[E any] struct {
	// Do does all the work that has been added meanwhile. It is set before the first is, and
	// must not panic.
	Do func([]E)

	mu      sync.Mutex
	waiting []E
	doing   sync.WaitGroup // held by the goroutine, if there is one
	runs    bool
	closed  bool
}

// Add adds work. After Close it is dropped.
func (q *Queue[E]) Add(work E) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	q.waiting = append(q.waiting, work)
	if !q.runs {
		q.runs = true
		q.doing.Go(q.run)
	}
}

func (q *Queue[E]) run() {
	for {
		q.mu.Lock()
		all := q.waiting
		q.waiting, q.runs = nil, len(all) > 0
		q.mu.Unlock()
		if len(all) == 0 {
			return
		}
		q.Do(all)
	}
}

// Close returns when all work is done.
func (q *Queue[E]) Close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.doing.Wait()
}
