package report

import "sync"

// A Queue tells events one after the other, in a goroutine that ends when there are none, so
// that whoever has one does not wait for those who hear of it. Tell is set before the first one.
type Queue[E any] struct {
	// Tell hears of an event. It must not panic.
	Tell func(E)

	mu      sync.Mutex
	waiting []E
	telling sync.WaitGroup // held by the goroutine, if there is one
	runs    bool
	closed  bool
}

// Add adds an event. After Close it is dropped.
func (q *Queue[E]) Add(ev E) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	if q.waiting = append(q.waiting, ev); !q.runs {
		q.runs = true
		q.telling.Go(q.run)
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
		for _, ev := range all {
			q.Tell(ev)
		}
	}
}

// Close returns when all events are told.
func (q *Queue[E]) Close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.telling.Wait()
}
