package redis

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/rediswire"
)

// A batcher is where calls wait to share batches to one server. It is safe for
// concurrent use.
type batcher struct {
	router  *Router
	server  rediswire.Server
	breaker *breaker
	aside   chan struct{} // a value for each command that is under way beside batches

	cfg    *Config
	about  rediswire.About
	linger time.Duration
	limit  int // of batches in flight

	mu          sync.Mutex
	queue       []*waiter           // in the order of their arrival
	places      uint64              // how many have arrived
	idle        int                 // returns in the queue that do not begin a batch yet
	held        []*waiter           // those with a busy key, apart from the queue
	heavy       []*waiter           // those of much work that have no room in the queue, see postpone
	busy        map[uint64]int      // how often keys are, by their hashes, see isBusy
	heavyPlaces map[uint64][]uint64 // of those of heavy, by the hashes of keys that they make busy
	batches     []*batch            // under way
	inFlight    int                 // flush loops, but for those of yielded batches
	yielded     int                 // batches that nobody waits for to return
	failing     bool                // the last batch was overdue
	timer       *time.Timer
	alarm       time.Duration // when timer will call expire; 0: never

	gathering   bool // a caller is about to send a batch of all who wait
	lastCallers int  // in the last batch

	crowded  atomic.Int32  // above 0 if several callers were in one of the last batches
	shortest time.Duration // of all batches that were answered; 0: none was
	lastTrip atomic.Int64  // how long the last batch took; 0: it failed
	slow     atomic.Int32  // how many batches in a row took longer than linger
	shared   atomic.Int32  // what keys the check for sharding was told of
	fit      atomic.Bool   // the server has shown that it can count
	warmedAt atomic.Int64  // when connections were last made ahead of need
	clock    clock.Remote  // the server's
}

// Do has a waiter's calls executed. It returns when that is done, when the
// timeout is over, or when ctx ends. If the error is nil the caller frees the
// waiter; otherwise it must not use it any more. Calls that were not sent by
// then never are.
func (b *batcher) Do(ctx context.Context, w *waiter) error {
	if !b.allow(w) {
		return ErrOpen
	}
	b.setPatience(ctx, w)
	batch, ok := b.join(w)
	if !ok {
		return ErrCrowded
	}
	if batch != nil {
		b.flushInline(batch)
	}
	return b.Wait(ctx, w)
}

// Start has another goroutine execute a waiter's calls; Wait is due.
func (b *batcher) Start(ctx context.Context, w *waiter) error {
	if !b.allow(w) {
		return ErrOpen
	}
	b.setPatience(ctx, w)
	w.inline = false
	if _, ok := b.join(w); !ok {
		return ErrCrowded
	}
	return nil
}

// Wait returns what became of a waiter that was started, as Do does.
func (b *batcher) Wait(ctx context.Context, w *waiter) error { return w.wait(ctx, b.breaker) }

// allow asks the circuit breaker for permission to send a waiter. Without it the waiter is
// freed.
func (b *batcher) allow(w *waiter) bool {
	permission, ok := b.breaker.Allow(w.arrived)
	if !ok {
		w.Free()
		return false
	}
	w.permission, w.due = permission, w.arrived+b.cfg.Timeout
	return true
}

// setPatience finds out whether a caller may send a batch by itself, which is quicker
// than to wait for another goroutine: the client gives up when the timeout is
// over, the caller has that much time, and Redis is near, so that there is time
// to make a connection. Otherwise a caller that has some time watches its
// context only once it has lingered: to wait for both costs twice as much, and a
// batch seldom takes that long.
func (b *batcher) setPatience(ctx context.Context, w *waiter) {
	near := b.about.Punctual && !b.far() && !w.permission.Probe()
	if ctx.Done() == nil {
		w.lazy, w.inline = false, near
		return
	}
	left := b.cfg.Timeout
	if deadline, ok := ctx.Deadline(); ok {
		left = clock.At(deadline) - w.arrived
	}
	w.lazy = left >= b.linger
	w.inline = near && b.cfg.Timeout <= maxInline && left >= b.cfg.Timeout
}

// join has a waiter wait for a batch, and sees to it that one is sent if one may be. A caller
// that may send its batch inline, and now, is given that. If too many wait already join
// frees the waiter and returns false.
func (b *batcher) join(w *waiter) (batch *batch, ok bool) {
	b.mu.Lock()
	heavy := w.work > heavyFrom
	if len(b.queue)+len(b.held) >= maxWaiting || heavy && len(b.heavy) >= maxWaiting {
		b.mu.Unlock()
		b.breaker.Cancel(w.permission)
		w.Free()
		return nil, false
	}
	b.places++
	w.place = b.places
	if heavy && b.postpone(w) {
		b.mu.Unlock()
		return nil, true
	}
	if w.inline {
		batch = b.openInline(w)
	}
	if batch == nil {
		b.enqueue(w)
	}
	b.mu.Unlock()
	return batch, true
}

// open returns a batch to fill and send, which counts as in flight from now on.
func (b *batcher) open() *batch {
	b.inFlight++
	return batches.Get().(*batch)
}

// openInline returns a batch for a caller to send, with its waiter and the returns that wait for
// a batch, or nil if the waiter is to be queued. While callers share batches the waiter is
// queued here, and the caller sends a batch of all who wait by then: those whom the last batch
// has told call again a moment later.
func (b *batcher) openInline(w *waiter) *batch {
	if len(b.queue) != b.idle || len(b.busy) > 0 && b.isBusy(w) {
		return nil
	}
	if b.crowded.Load() > 0 {
		if b.inFlight > 0 || b.lastCallers < gatherFrom {
			return nil
		}
		batch := b.open()
		batch.gathers, b.gathering = true, true
		w.lazy = false
		b.push(w)
		return batch
	}
	if b.inFlight >= baseInFlight || len(b.queue) > 0 && !b.fits(w) {
		return nil
	}
	batch := b.open()
	w.lazy = false
	batch.waiters = append(append(batch.waiters[:0], b.queue...), w)
	clear(b.queue)
	b.queue, b.idle = b.queue[:0], 0
	b.depart(batch, w.arrived, b.cfg.Timeout)
	return batch
}

// enqueue adds a waiter to the queue, or to those with a busy key.
func (b *batcher) enqueue(w *waiter) {
	if len(b.busy) > 0 && b.isBusy(w) {
		b.hold(w)
		return
	}
	b.push(w)
	if w.idleUntil != 0 {
		b.addIdle()
	}
	b.startBase()
}

func (b *batcher) push(w *waiter) {
	b.schedule(w.nextCheck(b.linger), w.arrived)
	b.queue = append(b.queue, w)
}

// depart registers a batch that is about to be sent, and then has so long for its connection
// and answer.
func (b *batcher) depart(batch *batch, now, patience time.Duration) {
	batch.sent, batch.overdue, batch.yielded, batch.redirected = now, false, false, false
	batch.clock, batch.serverTime = b.clock.Latest(), b.serverTime(now)
	batch.until = now + patience
	batch.begin()
	b.batches = append(b.batches, batch)
	b.board(batch)
	b.schedule(now+b.cfg.Timeout, now)
}

// board takes stock of the waiters of a batch that leaves. What it returns and renews makes
// keys busy.
func (b *batcher) board(batch *batch) {
	batch.callers, batch.permission = 0, 0
	for _, w := range batch.waiters {
		w.idleUntil = 0
		batch.permission = max(batch.permission, w.permission)
		if w.returned == nil {
			batch.callers++
		}
		if w.occupies() {
			b.occupy(batch, w)
		}
	}
}

// serverTime returns what the server's clock is expected to show at an instant, in microseconds
// since 1970: before its first reply, what that of the process does.
func (b *batcher) serverTime(now time.Duration) int64 {
	if shown, known := b.clock.At(now); known {
		return shown
	}
	if b.cfg.Wall != nil {
		return b.cfg.Wall()
	}
	return time.Now().UnixMicro()
}

// schedule sees to it that expire is called at an instant, or before. There is
// one timer for all waiters, which is hardly ever touched as long as it runs.
func (b *batcher) schedule(instant, now time.Duration) {
	if b.alarm != 0 && b.alarm <= instant {
		return
	}
	b.alarm = instant
	if b.timer == nil {
		b.timer = time.AfterFunc(instant-now, b.expire)
	} else {
		b.timer.Reset(instant - now)
	}
}

// far reports whether Redis is far away by the last batch, or may be since there
// was none.
func (b *batcher) far() bool {
	took := time.Duration(b.lastTrip.Load())
	return took == 0 || took > b.linger
}

// An outcome is what a batch says about its server when it is over.
type outcome uint8

const (
	unsent    outcome = iota
	answered          // the server replied, perhaps with an error
	failed            // it did not, or that it cannot do anything now
	elsewhere         // it sent the batch to another server
)

// release notes that a batch is over, how, and how long it took. It reports whether its flush
// loop keeps its place, and whether the batch was overdue.
func (b *batcher) release(batch *batch, how outcome, took time.Duration) (kept, overdue bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.batches, batch)
	b.batches = slices.Delete(b.batches, i, i+1)
	if len(batch.keys) > 0 {
		b.vacate(batch)
	}
	b.lastCallers = batch.callers
	crowded := b.crowded.Load()
	if batch.callers >= crowd {
		b.crowded.Store(2 * baseInFlight)
	} else if crowded > 0 {
		b.crowded.Store(crowded - 1)
	}
	clear(batch.waiters)
	batch.waiters = batch.waiters[:0]
	if !batch.overdue && how == answered {
		b.failing = false
		b.lastTrip.Store(int64(took))
		if b.shortest == 0 || took < b.shortest {
			b.shortest = took
		}
	} else if !batch.overdue && how == failed {
		b.failing = true
		b.lastTrip.Store(0)
	}
	if len(b.heavy) > 0 {
		b.admitHeavy()
	}
	if batch.yielded {
		batch.yielded = false
		b.yielded--
		b.startBase()
		return false, batch.overdue
	}
	return true, batch.overdue
}
