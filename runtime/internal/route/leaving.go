package route

import (
	"context"
	"sync"
	"time"

	"github.com/rategen/rategen/runtime/internal/batch"
	"github.com/rategen/rategen/runtime/rediswire"
)

// Whether a server that does not respond still has keys is looked up after a while, and
// again after twice that.
const (
	leavingAfter  = time.Second
	leavingAtMost = 30 * time.Second
)

// leaving is the watch for servers that have no keys any more. It runs while a circuit
// breaker is open: nobody would ask such a server again, and its breaker would never close.
type leaving struct {
	timer   *time.Timer // nil: nothing is watched
	pause   time.Duration
	closed  bool
	running sync.WaitGroup
}

// watchLeaving begins the watch, unless it runs.
func (r *Router) watchLeaving() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w := &r.leaving; w.timer == nil && !w.closed {
		w.pause = leavingAfter
		w.timer = time.AfterFunc(w.pause, r.forgetWithoutKeys)
	}
}

// Close ends the watch and returns when it has ended.
func (r *Router) Close() {
	r.mu.Lock()
	w := &r.leaving
	if w.closed = true; w.timer != nil {
		w.timer.Stop()
	}
	r.mu.Unlock()
	w.running.Wait()
}

// forgetWithoutKeys forgets the servers without keys among those that do not respond. While
// others do not it looks again.
func (r *Router) forgetWithoutKeys() {
	w := &r.leaving
	r.mu.Lock()
	if w.closed {
		r.mu.Unlock()
		return
	}
	w.running.Add(1)
	r.mu.Unlock()
	defer w.running.Done()

	r.mu.Lock()
	silent := r.unresponsive()
	r.mu.Unlock()
	if len(silent) > 0 {
		if serving, err := r.serving(); err == nil {
			for _, b := range silent {
				if !serving[b.Server] {
					r.forget(b)
				}
			}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if w.timer = nil; len(r.unresponsive()) > 0 && !w.closed {
		w.pause = min(2*w.pause, leavingAtMost)
		w.timer = time.AfterFunc(w.pause, r.forgetWithoutKeys)
	}
}

// unresponsive returns the batchers of the servers that do not respond. The caller holds mu.
func (r *Router) unresponsive() (silent []*batch.Batcher) {
	for _, b := range r.byServer {
		if b.Breaker.Open() {
			silent = append(silent, b)
		}
	}
	return silent
}

// serving returns the servers that have keys, by the newest that the client can learn.
func (r *Router) serving() (map[rediswire.Server]bool, error) {
	ctx, cancel := r.limited(context.Background())
	defer cancel()
	serving := make(map[rediswire.Server]bool)
	err := r.guard(func() error {
		masters, err := r.several.Masters(ctx)
		for _, server := range masters {
			serving[server] = true
		}
		return err
	})
	return serving, err
}

// forget forgets batchers. What is under way there goes on.
func (r *Router) forget(batchers ...*batch.Batcher) {
	for _, b := range batchers {
		r.mu.Lock()
		for server, other := range r.byServer {
			if other == b {
				delete(r.byServer, server)
			}
		}
		r.mu.Unlock()
		for i := range r.bySlot {
			r.bySlot[i].CompareAndSwap(b, nil)
		}
		b.Breaker.Retire()
	}
}
