package settle

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/terms"
)

const (
	// maxWaiting is how many charges wait to be settled at most: about 1 MiB.
	maxWaiting = 4096
	// together is how many are settled in one request to Redis.
	together = terms.MaxWork / terms.Work
)

// A queue holds charges until they are settled. A goroutine settles them while there are
// any. The zero value is empty.
type queue struct {
	mu      sync.Mutex
	waiting Batch
	done    chan struct{} // closed when the goroutine ends; nil: there is none
	closed  bool
}

// Later settles charges of the limiter's store soon, together with others. If too many
// wait for that already it settles these itself, together with some of those. Its caller
// has no use for its errors.
func (s *Settler) Later(ctx context.Context, b *Batch) {
	if !s.add(b) {
		s.share(b)
		s.report(ctx, false, b)
	}
}

// AtOnce is Later for charges whose store is in this process, and quick.
func (s *Settler) AtOnce(ctx context.Context, local bool, b *Batch) { s.report(ctx, local, b) }

// GiveBack gives units of a charge back later. They stay charged if too much waits for
// that already.
func (s *Settler) GiveBack(p *plan.Plan, c terms.Charge) {
	b := NewBatch()
	b.copy(p, c)
	s.add(b)
	b.Free()
}

// add adds charges to the queue. It returns false, and has done nothing, if the
// queue is full or closed.
func (s *Settler) add(b *Batch) bool {
	q := &s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || len(q.waiting.Charges)+len(b.Charges) > maxWaiting {
		return false
	}
	for i := range b.Charges {
		q.waiting.copy(b.Plans[i], b.Charges[i])
	}
	if q.done == nil && len(b.Charges) > 0 {
		q.done = make(chan struct{})
		go s.run(q.done)
	}
	return true
}

// share moves some of what waits to a batch, as many as one request to Redis has. A
// caller that has to wait for a request takes others along.
func (s *Settler) share(b *Batch) {
	q := &s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	n := max(0, len(q.waiting.Charges)-max(0, together-len(b.Charges)))
	for i := n; i < len(q.waiting.Charges); i++ {
		b.copy(q.waiting.Plans[i], q.waiting.Charges[i])
	}
	q.waiting.cut(n)
}

// run settles what waits until nothing does.
func (s *Settler) run(done chan struct{}) {
	defer close(done)
	var sent Batch
	for s.next(&sent) {
		func() {
			defer s.Contain()
			s.report(context.Background(), false, &sent)
		}()
	}
}

// next takes all that waits out of the queue. It returns false if nothing does:
// then the goroutine ends.
func (s *Settler) next(sent *Batch) bool {
	q := &s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting.Charges) == 0 {
		q.done = nil
		return false
	}
	sent.clear()
	*sent, q.waiting = q.waiting, *sent
	return true
}

// Close returns when all that waits is settled, and the goroutine has ended. The
// error is non-nil if that takes longer than a limit.
func (s *Settler) Close(limit time.Duration) error {
	q := &s.queue
	q.mu.Lock()
	q.closed = true
	done := q.done
	q.mu.Unlock()
	if done == nil {
		return nil
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
		return nil
	case <-timer.C:
		return errUnsettled
	}
}

var errUnsettled = errors.New("some decisions could not be settled in time: their costs stay as they were reserved")
