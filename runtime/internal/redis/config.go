package redis

import (
	"fmt"
	"time"

	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/internal/recall"
	"github.com/rategen/rategen/runtime/internal/script"
	"github.com/rategen/rategen/runtime/internal/server"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rediswire"
)

const (
	// baseInFlight is how many batches are under way at a time, if nobody has to
	// wait for long. So many callers send each its own: a third one makes them share.
	baseInFlight = 2
	// maxInFlight is how many are if Redis is far away, so that calls would wait for long,
	// and the client has twice as many connections.
	maxInFlight = 16
	// maxOverdue is how many overdue batches may be under way beside those.
	maxOverdue = 40
	// crowd is from how many callers in a batch on callers count as sharing trips.
	crowd = 2
	// gatherFrom is from how many callers in a batch on it is quicker if one of them sends
	// the next batch than if another goroutine does.
	gatherFrom = 4
	// maxAside is how many commands beside batches are under way at a time.
	maxAside = 64
	// maxWaiting is how many callers may wait for a batch.
	maxWaiting = 16_384
	// idleTime is how long a return waits for a request that goes anyway, if that is no more
	// than a tenth of the timeout. Few callers that give back what each call was charged would
	// otherwise send two requests for each.
	idleTime = time.Millisecond
	// maxIdle is how many returns wait like that: as many as a batch takes.
	maxIdle = terms.MaxWork / terms.Work
	// maxLinger bounds the time after which a waiting call is sent although two
	// batches are under way.
	maxLinger = 5 * time.Millisecond
	// maxInline is the longest timeout with which a caller sends a batch by
	// itself, and so does not see that its context has ended before the batch
	// returns.
	maxInline = 100 * time.Millisecond
	// farAfter is how many slow batches in a row say that Redis is far away.
	farAfter = 3
	// minBatchTime is the least time that a batch has for its connection and
	// answer, although its callers leave earlier.
	minBatchTime = 500 * time.Millisecond
)

// ErrCrowded is the error of a call for which too many others wait.
var ErrCrowded = private.New("too many calls wait for redis")

// A LateError is the error of a call that has waited for as long as it may. Its
// value is that time.
type LateError time.Duration

func (e LateError) Error() string {
	return fmt.Sprintf("redis gave no answer within %v", time.Duration(e))
}

// Timeout reports that the error is one of time, as in package net.
func (LateError) Timeout() bool { return true }

// isLate reports whether an error is that a call has waited for as long as it may.
func isLate(err error) bool {
	_, late := err.(LateError)
	return late
}

// A Config is what the batchers of a store have in common.
type Config struct {
	// Timeout is a caller's budget.
	Timeout time.Duration
	Library script.Library
	// Refusals learns what Redis refuses; nil: nobody does.
	Refusals *recall.Memory
	// Sharding finds out whether no call may be decided, since keys are sharded; or nil.
	Sharding *server.Sharding
	// Undecided is called for calls that were not decided, and for charges that were not given
	// back, but not for those whose caller gave up.
	Undecided func(err error, calls int)
	// Changed is called when a breaker opens or closes.
	Changed func(node string, open bool)
	// Stepped is called when a server's clock is found to have stepped, back if by is below 0.
	Stepped func(node string, by time.Duration)
	// Panicked is called with the value of a panic in the client.
	Panicked func(value any)
	// Beside is how much longer a call waits for limits in shadow mode that lie apart
	// from its others. 0 means ShadowTime.
	Beside time.Duration
	// Wall is the process's clock in microseconds since 1970, by which a server's time is
	// expected before its first reply. Nil: the machine's.
	Wall func() int64
	// Linger is how long a call waits before one more batch is sent for it. 0
	// means a tenth of the timeout, and at most 5 ms.
	Linger time.Duration
}

func newBatcher(r *Router, server rediswire.Server) *batcher {
	b := &batcher{
		router: r, server: server, aside: make(chan struct{}, maxAside),
		heavyPlaces: map[uint64][]uint64{}, cfg: r.cfg, about: server.About(), linger: r.cfg.Linger, limit: maxInFlight,
	}
	if b.linger <= 0 {
		b.linger = min(maxLinger, b.cfg.Timeout/10)
	}
	if b.about.Most > 0 {
		b.limit = max(baseInFlight, min(maxInFlight, b.about.Most/2))
	}
	b.breaker = newBreaker(r, b.address())
	return b
}

// address returns the server's address, or "" if there is one server.
func (b *batcher) address() string {
	if b.router.several == nil {
		return ""
	}
	return b.about.Address
}

// Load returns how many callers wait for a batch, and how many batches are under
// way.
func (b *batcher) Load() (waiting, batches int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.queue) + len(b.held) + len(b.heavy), len(b.batches)
}
