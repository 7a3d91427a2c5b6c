// Package batch lets concurrent calls of a process share trips to one Redis
// server. Up to three callers send a batch each. More wait while batches are under way,
// and when one returns they are sent together. Callers who call again as soon as they are
// told come along.
//
// A return, by which a call gives back what it was charged, goes with the next batch, ahead of
// what that takes. If there is none within a millisecond it goes by itself. See [Batcher.Return].
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
// Two shared batches may be under way at any time: while Redis works on one, the reply
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
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/runtime/internal/breaker"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/script"
	"github.com/rategen/rategen/runtime/rediswire"
)

// A Batcher is where calls wait to share batches to one server. It is safe for
// concurrent use.
type Batcher struct {
	// Server is where the batches go.
	Server rediswire.Server
	// Breaker is the server's.
	Breaker *breaker.Breaker
	// Aside holds a value for each command to the server that is under way beside
	// batches.
	Aside chan struct{}

	cfg    *Config
	about  rediswire.About
	linger time.Duration
	limit  int // of batches in flight

	mu       sync.Mutex
	waiting  []*Waiter      // in the order of their arrival
	places   uint64         // how many have arrived
	resting  int            // how many of them are returns that do not begin a batch yet
	held     []*Waiter      // those with a busy key, apart from waiting
	busy     map[uint64]int // how often keys are, by their hashes, see isBusy
	batches  []*batch       // under way
	inFlight int            // flush loops, but for those of yielded batches
	yielded  int            // batches that nobody waits for to return
	failing  bool           // the last batch was overdue
	timer    *time.Timer
	next     time.Duration // when timer will call expire; 0: never

	gathering bool // a caller is about to send a batch with all who wait
	last      int  // callers in the last batch

	crowded atomic.Int32           // above 0 if several callers were in one of the last batches
	recent  atomic.Int64           // how long the last batch took; 0: it failed
	slow    atomic.Int32           // how many batches in a row took longer than linger
	shared  atomic.Int32           // what Shared was told
	fit     atomic.Bool            // the server has shown that it can count
	told    atomic.Pointer[[]uint] // the scripts that settle, of which it has been told the text
	warming atomic.Int64           // when connections were last made ahead of need
	clock   clock.Remote           // the server's
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

// Leave gives up a waiter of limits in shadow mode that was started for calls which are not
// admitted. What these are charged is given back. It does not wait.
func (b *Batcher) Leave(w *Waiter) {
	if w.state.CompareAndSwap(pending, claimed) {
		b.Breaker.Cancel(w.permission)
	} else if b.Wait(context.Background(), w) == nil { // its batch has not given it back
		b.giveBack(w.slot, w.held(nil))
		w.Free()
	}
}

// patience returns whether a caller may send a batch by itself, which is quicker
// than to wait for another goroutine: the client gives up when the timeout is
// over, the caller has that much time, and Redis is near, so that there is time
// to make a connection. Otherwise a caller that has some time watches its
// context only once it has lingered: to wait for both costs twice as much, and a
// batch seldom takes that long.
func (b *Batcher) patience(ctx context.Context, w *Waiter) (inline bool) {
	near := b.about.Punctual && !b.far()
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
	if !b.arrive(w) {
		b.mu.Unlock()
		return nil, ErrCrowded
	}
	if crowds := b.crowded.Load() > 0; inline && len(b.waiting) == b.resting && (len(b.busy) == 0 || !b.isBusy(w)) {
		switch {
		case crowds && b.inFlight == 0 && b.last >= gatherFrom:
			return b.gather(w), nil
		case !crowds && b.inFlight < min(maxLone, b.limit) && (len(b.waiting) == 0 || b.fits(w)):
			w.lazy = false
			b.inFlight++
			own := batches.Get().(*batch)
			own.waiters = append(own.waiters[:0], b.waiting...)
			own.waiters = append(own.waiters, w)
			clear(b.waiting)
			b.waiting, b.resting = b.waiting[:0], 0
			b.depart(own, w.arrived, b.cfg.Timeout)
			b.mu.Unlock()
			return own, nil
		}
	}
	b.enqueue(w)
	b.mu.Unlock()
	return nil, nil
}

// queue adds a waiter to the queue.
func (b *Batcher) queue(w *Waiter) {
	b.schedule(w.next(b.linger), w.arrived)
	b.waiting = append(b.waiting, w)
}

// arrive gives a waiter its place in the order of all arrivals. It returns false if too many
// wait already.
func (b *Batcher) arrive(w *Waiter) bool {
	if len(b.waiting)+len(b.held) >= maxWaiting {
		return false
	}
	b.places++
	w.place = b.places
	return true
}

// enqueue adds a waiter to the queue, or to those with a busy key.
func (b *Batcher) enqueue(w *Waiter) {
	if len(b.busy) > 0 && b.isBusy(w) {
		b.hold(w)
		return
	}
	b.queue(w)
	if w.rests != 0 {
		b.rest()
	}
	b.startBase()
}

// depart registers a batch that is about to be sent, and has so long for that.
func (b *Batcher) depart(own *batch, now, patience time.Duration) {
	own.sent, own.overdue, own.yielded, own.clock, own.now = now, false, false, b.clock.Latest(), b.timeAt(now)
	own.until = now + patience
	own.begin()
	b.batches = append(b.batches, own)
	b.board(own)
	b.schedule(now+b.cfg.Timeout, now)
}

// board counts the callers of a batch that leaves. What it returns and renews makes keys busy.
func (b *Batcher) board(own *batch) {
	own.callers = 0
	for _, w := range own.waiters {
		w.rests = 0
		if w.returned == nil {
			own.callers++
		}
		if w.returned != nil || w.op == script.Renew {
			b.occupy(own, w)
		}
	}
}

// timeAt returns what the server's clock is expected to show at an instant, in microseconds
// since 1970: before its first reply, what that of the process does.
func (b *Batcher) timeAt(now time.Duration) int64 {
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
func (b *Batcher) schedule(next, now time.Duration) {
	if b.next != 0 && b.next <= next {
		return
	}
	b.next = next
	if b.timer == nil {
		b.timer = time.AfterFunc(next-now, b.expire)
	} else {
		b.timer.Reset(next - now)
	}
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
	b.last = own.callers
	if len(own.keys) > 0 {
		b.vacate(own)
	}
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
	b.startBase()
	return false, overdue
}
