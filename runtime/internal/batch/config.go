package batch

import (
	"context"
	"fmt"
	"time"

	"github.com/rategen/rategen/runtime/internal/breaker"
	"github.com/rategen/rategen/runtime/internal/denials"
	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/internal/script"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rediswire"
)

const (
	// baseInFlight is how many batches are under way at a time, if nobody has to
	// wait for long.
	baseInFlight = 2
	// maxLone is how many are if each is a caller's own: three who share are slower than
	// three who do not, four are quicker.
	maxLone = 3
	// maxInFlight is how many are if somebody has to and Redis is far away, if
	// the client has twice as many connections.
	maxInFlight = 16
	// maxOverdue is how many overdue batches may be under way beside those.
	maxOverdue = 40
	// crowd is how many callers in a batch show that callers share trips.
	crowd = 2
	// gatherFrom is how many callers in a batch make it quicker that one of them sends
	// the next than that another goroutine does.
	gatherFrom = 4
	// maxAside is how many commands beside batches are under way at a time.
	maxAside = 64
	// maxWaiting is how many callers may wait for a batch.
	maxWaiting = 16_384
	// restTime is how long a return waits for a request that goes anyway, if that is no more
	// than a tenth of the timeout. Few callers that give back what each call was charged would
	// otherwise send two requests for each.
	restTime = time.Millisecond
	// maxResting is how many returns wait like that: as many as a batch takes.
	maxResting = terms.MaxWork / terms.Work
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

// A Config is what the batchers of a store have in common.
type Config struct {
	// Timeout is a caller's budget.
	Timeout time.Duration
	Library script.Library
	// Denials learns what Redis denies; nil: nobody does.
	Denials *denials.Memory
	// Router reaches all servers of several, and follows a key that has moved.
	// It is nil if there is one server.
	Router rediswire.Client
	// Server returns the server with an address, or nil if it is
	// not known.
	Server func(ctx context.Context, address string) rediswire.Server
	// Doubt is called with an error after which keys may be on other servers.
	Doubt func(err error)
	// Moved is called when calls on a slot failed: the next ones should look
	// where it is.
	Moved func(b *Batcher, slot int, err error)
	// Changed is called when a breaker opens or closes.
	Changed func(node string, open bool)
	// SteppedBack is called when a server's clock is found to have stepped back.
	SteppedBack func(node string, by time.Duration)
	// Shared is called with two keys of the first batch that has several, and
	// of the first one whose keys have different hash tags: at most twice. Nil:
	// nobody wants to know.
	Shared func(key, other string)
	// Kept is called with the error because of which a charge could not be given back that
	// no caller waits for.
	Kept func(err error)
	// Panicked is called with the value of a panic in the client.
	Panicked func(value any)
	// Beside is how much longer a call waits for limits in shadow mode that lie apart
	// from its others. 0 means package route's ShadowTime.
	Beside time.Duration
	// Wall is the process's clock in microseconds since 1970, by which a server's time is
	// expected before its first reply. Nil: the machine's.
	Wall func() int64
	// Linger is how long a call waits before one more batch is sent for it. 0
	// means a tenth of the timeout, and at most 5 ms.
	Linger time.Duration
}

// New returns a batcher for a server.
func New(cfg *Config, server rediswire.Server) *Batcher {
	b := &Batcher{Server: server, Aside: make(chan struct{}, maxAside), cfg: cfg, about: server.About(), linger: cfg.Linger, limit: maxInFlight}
	if b.linger <= 0 {
		b.linger = min(maxLinger, cfg.Timeout/10)
	}
	if most := b.about.Most; most > 0 {
		b.limit = max(baseInFlight, min(maxInFlight, most/2))
	}
	b.told.Store(new([]uint))
	b.Breaker = breaker.New(cfg.Timeout, func(open bool) { cfg.Changed(b.Address(), open) })
	return b
}

// Address returns the server's address, or "" if there is one server.
func (b *Batcher) Address() string {
	if b.cfg.Router == nil {
		return ""
	}
	return b.about.Address
}

// Load returns how many callers wait for a batch, and how many batches are under
// way.
func (b *Batcher) Load() (waiting, batches int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiting) + len(b.held), len(b.batches)
}
