package settle

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/terms"
)

const (
	// maxWaiting is how many charges wait to be settled at most: about 1 MiB.
	maxWaiting = 4096
	// together is how many are settled in one request to Redis.
	together = terms.MaxWork / terms.Work
	// linger is how long charges wait for others to share their request. Few callers that
	// settle each call would otherwise send a request more for each.
	linger = time.Millisecond
)

// A queue holds charges until they are settled. A goroutine settles them while there are
// any. The zero value is empty.
type queue struct {
	mu      sync.Mutex
	waiting Batch
	sent    Batch         // the goroutine's, whose memory is that of the next ones to wait
	now     chan struct{} // receives a value when charges are not to wait for others
	done    chan struct{} // closed when the goroutine ends; nil: there is none
	closed  bool
}

// Later settles charges of the limiter's store soon, together with others. If too many
// charges wait already it settles these itself, together with some that wait. It reports
// errors to Unsettled.
func (s *Settler) Later(ctx context.Context, b *Batch) {
	if !s.add(b) {
		s.Along(ctx, b)
	}
}

// Along settles charges before it returns, together with some that wait. It reports errors
// to Unsettled.
func (s *Settler) Along(ctx context.Context, b *Batch) {
	s.share(b)
	s.report(ctx, false, b)
}

// AtOnce is Later for charges whose store is in this process, and quick.
func (s *Settler) AtOnce(ctx context.Context, local bool, b *Batch) { s.report(ctx, local, b) }

// GiveBack gives units of a charge back later. They stay charged if too many charges wait
// already.
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
		q.done, q.now = make(chan struct{}), make(chan struct{}, 1)
		go s.run(q.done, q.now)
	}
	if len(q.waiting.Charges) >= together || slices.ContainsFunc(b.Charges, isPermit) {
		select {
		case q.now <- struct{}{}:
		default: // a value is there already
		}
	}
	return true
}

// isPermit reports whether a call of another process may wait for what is given back.
func isPermit(c terms.Charge) bool { return c.Algorithm == terms.Permits }

// share moves waiting charges to a batch, up to as many as one request to Redis holds: the
// caller waits for that request anyway.
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
func (s *Settler) run(done, now chan struct{}) {
	defer close(done)
	timer := time.NewTimer(linger)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-now:
		}
		if !s.next() {
			return
		}
		func() {
			defer s.Contain()
			s.report(context.Background(), false, &s.queue.sent)
		}()
		timer.Reset(linger)
	}
}

// next takes all waiting charges out of the queue. It returns false if there are none; then
// the goroutine ends.
func (s *Settler) next() bool {
	q := &s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.sent.clear(); len(q.waiting.Charges) == 0 {
		q.done = nil
		return false
	}
	q.sent, q.waiting = q.waiting, q.sent
	return true
}

// Close returns when all waiting charges are settled, and the goroutine has ended. The error
// is non-nil if that is not within a time.
func (s *Settler) Close(within time.Duration) error {
	q := &s.queue
	q.mu.Lock()
	done := q.done
	if !q.closed && done != nil {
		close(q.now)
	}
	q.closed = true
	q.mu.Unlock()
	if done != nil && !clock.Await(done, within) {
		return errUnsettled
	}
	return nil
}

var errUnsettled = errors.New("some decisions could not be settled in time: their costs stay as they were reserved")
