// Package batch lets concurrent calls of a process share trips to one Redis
// server. A call that finds no batch under way is sent at once; while batches
// are under way calls wait, and when one returns they are sent together. Callers who
// call again as soon as they are told come along, even if they are two: one trip for
// both takes much less than two trips do.
//
// # Time and failure
//
// A caller's budget is the timeout, and runs from its arrival. It covers the
// wait for a batch, a connection and the answer. A caller whose budget or
// context is over leaves; its batch goes on.
//
// A batch's budget runs from when it is sent. An answer that comes within the
// timeout is a success, whoever still waits for it. After that the batch is
// overdue, which is one failure, and others no longer wait for it to return. It
// keeps its connection for half a second at least, since a connection to a
// distant Redis takes several round trips to make.
//
// Two batches may be under way at any time: while Redis works on one, the reply
// of the other and the next request are on the wire. When a caller has waited for
// a tenth of the timeout one more is sent for it: just one if Redis is near, which
// then takes unusually long, and as many as the connections allow if it is far
// away, where more batches at a time cost it nothing. While Redis fails there is
// one at a time, so that batches without an answer do not use up the connections.
//
// Package breaker says how many failures it takes until calls fail at once.
package batch

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime/internal/breaker"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/denials"
	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/internal/script"
)

const (
	// baseInFlight is how many batches are under way at a time, if nobody has to
	// wait for long.
	baseInFlight = 2
	// maxInFlight is how many are if somebody has to and Redis is far away, if
	// the client has twice as many connections.
	maxInFlight = 16
	// maxOverdue is how many overdue batches may be under way beside those.
	maxOverdue = 40
	// crowd is how many callers in a batch show that callers share trips.
	crowd = 2
	// enoughQuick is how many callers in a row who come back as soon as one was told
	// show that they had better share trips.
	enoughQuick = 8
	// gatherFrom is how many callers in a batch make it quicker that one of them sends
	// the next than that another goroutine does.
	gatherFrom = 4
	// maxAside is how many commands beside batches are under way at a time.
	maxAside = 64
	// maxWaiting is how many callers may wait for a batch.
	maxWaiting = 16_384
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
	Router redis.UniversalClient
	// Server returns the client of the server with an address, or nil if it is
	// not known.
	Server func(ctx context.Context, address string) *redis.Client
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
	// Kept is called with the error because of which a charge of a call that was denied
	// could not be given back.
	Kept func(err error)
	// Panicked is called with the value of a panic in the client.
	Panicked func(value any)
	// Beside is how much longer a call waits for limits in shadow mode that lie apart
	// from its others. 0 means package route's ShadowTime.
	Beside time.Duration
	// Linger is how long a call waits before one more batch is sent for it. 0
	// means a tenth of the timeout, and at most 5 ms.
	Linger time.Duration
}

// A Batcher is where calls wait to share batches to one server. It is safe for
// concurrent use.
type Batcher struct {
	// Client is that of the server.
	Client redis.UniversalClient
	// Breaker is the server's.
	Breaker *breaker.Breaker
	// Aside holds a value for each command to the server that is under way beside
	// batches.
	Aside chan struct{}

	cfg      *Config
	node     *redis.Client // Client, if it is one of a single server
	punctual bool          // the client gives up when a context's deadline is over
	linger   time.Duration
	limit    int // of batches in flight

	mu       sync.Mutex
	waiting  []*Waiter // in the order of their arrival
	batches  []*batch  // under way
	inFlight int       // flush loops, but for those of yielded batches
	yielded  int       // batches that nobody waits for to return
	failing  bool      // the last batch was overdue
	timer    *time.Timer
	next     time.Duration // when timer will call expire; 0: never

	gathering bool          // a caller is about to send a batch with all who wait
	last      int           // callers in the last batch
	released  time.Duration // when the last batch was over
	quick     int           // how many callers in a row joined soon after that

	crowded atomic.Int32 // above 0 if several callers were in one of the last batches
	recent  atomic.Int64 // how long the last batch took; 0: it failed
	slow    atomic.Int32 // how many batches in a row took longer than linger
	shared  atomic.Int32 // what Shared was told
	fit     atomic.Bool  // the server has shown that it can count
	warming atomic.Int64 // when connections were last made ahead of need
	clock   atomic.Int64 // the server's latest time in microseconds
}

// New returns a batcher for a server.
func New(cfg *Config, client redis.UniversalClient) *Batcher {
	b := &Batcher{Client: client, Aside: make(chan struct{}, maxAside), cfg: cfg, linger: cfg.Linger, limit: maxInFlight}
	if b.linger <= 0 {
		b.linger = min(maxLinger, cfg.Timeout/10)
	}
	if node, ok := client.(*redis.Client); ok {
		b.node = node
		b.punctual = node.Options().ContextTimeoutEnabled
		b.limit = max(baseInFlight, min(maxInFlight, node.Options().PoolSize/2))
	}
	b.Breaker = breaker.New(cfg.Timeout, func(open bool) { cfg.Changed(b.Address(), open) })
	return b
}

// Address returns the server's address, or "" if there is one server.
func (b *Batcher) Address() string {
	if b.node == nil || b.cfg.Router == nil {
		return ""
	}
	return b.node.Options().Addr
}

// Load returns how many callers wait for a batch, and how many batches are under
// way.
func (b *Batcher) Load() (waiting, batches int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiting), len(b.batches)
}

// Do has a sealed waiter's calls executed. It returns when that is done, when the
// timeout is over, or when ctx ends. If the error is nil the caller frees the
// waiter; otherwise it must not use it any more. Calls that were not sent by
// then never are.
func (b *Batcher) Do(ctx context.Context, w *Waiter) error {
	if err := b.Start(ctx, w, true); err != nil {
		return err
	}
	return b.Wait(ctx, w)
}

// Start has a sealed waiter's calls executed; Wait is due. If inline is true it may
// execute them before it returns.
func (b *Batcher) Start(ctx context.Context, w *Waiter, inline bool) error {
	permission, ok := b.Breaker.Allow(w.arrived)
	if !ok {
		w.Free()
		return breaker.ErrOpen
	}
	w.permission, w.due = permission, w.arrived+b.cfg.Timeout
	inline = b.patience(ctx, w) && inline && !permission.Probe()
	own, err := b.join(w, inline)
	if err != nil {
		b.Breaker.Cancel(permission)
		w.Free()
		return err
	}
	if own != nil {
		b.flushInline(own)
	}
	return nil
}

// Wait returns what became of a waiter that was started, as Do does.
func (b *Batcher) Wait(ctx context.Context, w *Waiter) error { return w.wait(ctx, b.Breaker) }

// patience returns whether a caller may send a batch by itself, which is quicker
// than to wait for another goroutine: the client gives up when the timeout is
// over, the caller has that much time, and Redis is near, so that there is time
// to make a connection. Otherwise a caller that has some time watches its
// context only once it has lingered: to wait for both costs twice as much, and a
// batch seldom takes that long.
func (b *Batcher) patience(ctx context.Context, w *Waiter) (inline bool) {
	near := b.punctual && !b.far()
	if ctx.Done() == nil {
		w.lazy = false
		return near
	}
	left := b.cfg.Timeout
	if deadline, ok := ctx.Deadline(); ok {
		left = clock.At(deadline) - w.arrived
	}
	w.lazy = left >= b.linger
	return near && b.cfg.Timeout <= maxInline && left >= b.cfg.Timeout
}

// join adds a waiter to the queue, and sees to it that a batch is sent if one
// may. If the caller may send it inline, and now, it is given a batch to send.
func (b *Batcher) join(w *Waiter, inline bool) (*batch, error) {
	b.mu.Lock()
	if len(b.waiting) >= maxWaiting {
		b.mu.Unlock()
		return nil, ErrCrowded
	}
	if crowds := b.crowds(w.arrived); inline && len(b.waiting) == 0 {
		switch {
		case crowds && b.inFlight == 0 && b.last >= gatherFrom:
			return b.gather(w), nil
		case !crowds && b.inFlight < baseInFlight:
			w.lazy = false
			b.inFlight++
			own := batches.Get().(*batch)
			own.waiters = append(own.waiters[:0], w)
			b.depart(own, w.arrived)
			b.mu.Unlock()
			return own, nil
		}
	}
	b.schedule(w.next(b.linger), w.arrived)
	b.waiting = append(b.waiting, w)
	b.startBase()
	b.mu.Unlock()
	return nil, nil
}

// gather has a caller send a batch of all who wait. Those come along that have been told
// a moment ago and call again. It unlocks the batcher.
func (b *Batcher) gather(w *Waiter) *batch {
	w.lazy = false
	b.inFlight++
	b.gathering = true
	b.schedule(w.next(b.linger), w.arrived)
	b.waiting = append(b.waiting, w)
	b.mu.Unlock()
	own := batches.Get().(*batch)
	own.gathers = true
	return own
}

// crowds reports whether callers do better to share a trip than to send a batch each:
// those of the last batches did, or callers come back as soon as they are told. One trip
// for two takes much less of both processes than two trips.
func (b *Batcher) crowds(now time.Duration) bool {
	if b.crowded.Load() > 0 {
		return true
	}
	if b.inFlight == 0 {
		return false
	}
	if now-b.released >= time.Duration(b.recent.Load())/8 {
		b.quick = 0
		return false
	}
	if b.quick++; b.quick < enoughQuick {
		return false
	}
	b.quick = 0
	b.crowded.Store(2 * baseInFlight)
	return true
}

// startBase starts a flush loop if somebody waits and fewer are under way than
// may be at any time.
func (b *Batcher) startBase() bool {
	if len(b.waiting) == 0 || b.gathering || b.inFlight >= baseInFlight || b.failing && b.inFlight > 0 {
		return false
	}
	b.start()
	return true
}

// start starts a flush loop.
func (b *Batcher) start() {
	b.inFlight++
	go b.flush(batches.Get().(*batch))
}

// depart registers a batch that is about to be sent.
func (b *Batcher) depart(own *batch, now time.Duration) {
	own.sent, own.overdue, own.yielded, own.clock = now, false, false, b.clock.Load()
	b.batches = append(b.batches, own)
	b.schedule(now+b.cfg.Timeout, now)
}

// collect fills a batch from the front of the queue. It returns false if nobody
// waits, and then the flush loop ends. So does one beyond those that may be under
// way at any time, unless somebody has lingered: else batches to a distant Redis
// would become many and small, and none would be left for who lingers.
func (b *Batcher) collect(own *batch) bool {
	if b.crowded.Load() > 0 {
		// The callers of the last batch run first. Those that call again come
		// along, and need no batch of their own. It takes two turns until all have
		// run that another processor has taken over.
		runtime.Gosched()
		runtime.Gosched()
	}
	for {
		b.mu.Lock()
		if own.gathers {
			own.gathers, b.gathering = false, false
		}
		n := min(len(b.waiting), maxWaiters)
		if n == 0 || b.inFlight > baseInFlight && !b.lingered(clock.Now()) {
			b.inFlight--
			b.mu.Unlock()
			return false
		}
		own.waiters = append(own.waiters[:0], b.waiting[:n]...)
		b.waiting = slices.Delete(b.waiting, 0, n)
		b.depart(own, clock.Now())
		b.mu.Unlock()

		n -= b.dropDenied(own)
		if taken := own.load(); taken < n {
			b.mu.Lock()
			b.waiting = slices.Insert(b.waiting, 0, own.waiters[taken:]...)
			own.waiters = slices.Delete(own.waiters, taken, n)
			if !b.startBase() && b.lingering(own.sent) {
				b.start()
			}
			b.mu.Unlock()
		}
		if len(own.groups) > 0 {
			return true
		}
		if kept, _ := b.release(own, unsent, 0); !kept { // all have given up
			return false
		}
	}
}

// lingering reports whether one more batch is due, for a caller that has waited
// for long enough.
func (b *Batcher) lingering(now time.Duration) bool {
	limit := baseInFlight + 1
	if b.far() {
		limit = b.limit
	}
	return !b.failing && b.inFlight < limit && b.lingered(now)
}

// lingered reports whether a caller has waited for long enough.
func (b *Batcher) lingered(now time.Duration) bool {
	for _, w := range b.waiting {
		if w.state.Load() == pending {
			return w.arrived+b.linger <= now
		}
	}
	return false
}

// An outcome is what a batch says about its server when it is over.
type outcome uint8

const (
	unsent    outcome = iota
	answered          // the server replied, perhaps with an error
	failed            // it did not, or that it cannot do anything now
	elsewhere         // it sent the batch to another server
)

// far reports whether Redis is far away by the last batch, or may be since there
// was none.
func (b *Batcher) far() bool {
	recent := time.Duration(b.recent.Load())
	return recent == 0 || recent > b.linger
}

// release notes that a batch is over, how, and how long it took. It reports whether its flush loop
// keeps its place, and whether the batch was overdue.
func (b *Batcher) release(own *batch, how outcome, took time.Duration) (kept, overdue bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.batches, own)
	b.batches = slices.Delete(b.batches, i, i+1)
	b.released, b.last = own.sent+took, len(own.waiters)
	if n := b.crowded.Load(); b.last >= crowd {
		b.crowded.Store(2 * baseInFlight)
	} else if n > 0 {
		b.crowded.Store(n - 1)
	}
	clear(own.waiters)
	own.waiters = own.waiters[:0]
	switch {
	case own.overdue:
	case how == answered:
		b.failing = false
		b.recent.Store(int64(took))
	case how == failed:
		b.failing = true
		b.recent.Store(0)
	}
	overdue = own.overdue
	if !own.yielded {
		return true, overdue
	}
	own.yielded = false
	b.yielded--
	return false, overdue
}

// yield lets another flush loop take the place of a batch's, unless too many
// have.
func (b *Batcher) yield(own *batch) {
	if own.yielded || b.yielded == maxOverdue {
		return
	}
	own.yielded = true
	b.yielded++
	b.inFlight--
	b.startBase()
}
