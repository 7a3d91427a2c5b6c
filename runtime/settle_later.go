package runtime

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/rategen/rategen/runtime/internal/terms"
)

const (
	// maxUnsettled is how many charges wait to be settled at most: about 1 MiB.
	maxUnsettled = 4096
	// settledTogether is how many are settled in one request to a [RedisStore].
	settledTogether = terms.MaxWork / terms.Work
	// closeTimeout is how long Close waits for them.
	closeTimeout = 2 * SettleTimeout
)

// SettleLater is [Limiter.Settle] for callers that have no use for its error. It
// returns at once, and a goroutine settles the decision together with others. If
// 4,096 charges wait for that already, it settles this decision itself before it
// returns, together with some of those. Errors reach the observers and the log.
// [Limiter.Close] waits for decisions that are not settled yet; a process that ends
// without it leaves the costs as they were reserved.
func (l *Limiter) SettleLater(ctx context.Context, d Decision, limits ...Limit) {
	if l == nil {
		l = withoutStore
	}
	if d.page == nil {
		return // nothing was charged
	}
	s := settlements.Get().(*settlement)
	defer s.free()
	if err := l.settlement(s, &d, limits); err != nil {
		i := slices.IndexFunc(limits, func(limit Limit) bool { return limit.rule != nil })
		if i >= 0 {
			l.events.unsettled(ctx, limits[i].rule, err)
		}
	}
	if len(s.charges) == 0 {
		return // nothing is left to settle
	}
	if d.Source == SourceLocal || memoryOf(l.store) != nil {
		l.settleAndReport(ctx, d.Source, s.charges)
	} else if !l.unsettled.add(l, s) {
		l.unsettled.share(s)
		l.settleAndReport(ctx, d.Source, s.charges)
	}
}

// settleAndReport settles charges and reports those that could not be.
func (l *Limiter) settleAndReport(ctx context.Context, source Source, charges []Charge) {
	for i, err := range l.settleEach(ctx, source, charges) {
		if err != nil {
			l.events.unsettled(ctx, charges[i].Rule, err)
		}
	}
}

// A settleQueue holds charges until they are settled. A goroutine settles them
// while there are any. The zero value is empty.
type settleQueue struct {
	mu      sync.Mutex
	waiting settlement
	done    chan struct{} // closed when the goroutine ends; nil: there is none
	closed  bool
}

// add adds charges to the queue. It returns false, and has done nothing, if the
// queue is full or closed.
func (q *settleQueue) add(l *Limiter, s *settlement) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || len(q.waiting.charges)+len(s.charges) > maxUnsettled {
		return false
	}
	for _, c := range s.charges {
		q.waiting.add(c)
	}
	if q.done == nil && len(s.charges) > 0 {
		q.done = make(chan struct{})
		go q.run(l, q.done)
	}
	return true
}

// share moves some of what waits to a settlement, as many as one request to a
// [RedisStore] has. A caller that has to wait for a request takes others along.
func (q *settleQueue) share(s *settlement) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := max(0, len(q.waiting.charges)-max(0, settledTogether-len(s.charges)))
	for _, c := range q.waiting.charges[n:] {
		s.add(c)
	}
	clear(q.waiting.charges[n:])
	q.waiting.charges = q.waiting.charges[:n]
}

// run settles what waits until nothing does.
func (q *settleQueue) run(l *Limiter, done chan struct{}) {
	defer close(done)
	var sent settlement
	for q.next(&sent) {
		func() {
			defer l.events.contain("store")
			l.settleAndReport(context.Background(), SourceStore, sent.charges)
		}()
	}
}

// next takes all that waits out of the queue. It returns false if nothing does:
// then the goroutine ends.
func (q *settleQueue) next(sent *settlement) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting.charges) == 0 {
		q.done = nil
		return false
	}
	sent.clear()
	*sent, q.waiting = q.waiting, *sent
	return true
}

// close returns when all that waits is settled, and the goroutine has ended. The
// error is non-nil if that takes longer than a limit.
func (q *settleQueue) close(limit time.Duration) error {
	q.mu.Lock()
	q.closed = true
	done := q.done
	q.mu.Unlock()
	if done == nil {
		return nil
	}
	return await(done, limit, errUnsettled)
}

var errUnsettled = errors.New("some decisions could not be settled in time: their costs stay as they were reserved")
