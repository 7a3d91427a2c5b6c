package redis

import (
	"context"
	"time"

	"github.com/rategen/rategen/runtime/internal/background"
	"github.com/rategen/rategen/runtime/rediswire"
)

// Whether a server that does not respond still has keys is looked up after watchAfter, and
// then after twice as long each time, up to watchAtMost.
const (
	watchAfter  = time.Second
	watchAtMost = 30 * time.Second
)

// A watch looks for servers that have no keys any more. It runs while a circuit breaker is
// open: nobody would ask such a server again, and its breaker would never close.
type watch struct {
	timer *time.Timer // nil: nothing is watched
	pause time.Duration
	work  background.Group
}

// breakerChanged tells that the circuit breaker of a node has opened or closed, and watches
// the servers of several while one is open.
func (r *Router) breakerChanged(node string, open bool) {
	r.cfg.Changed(node, open)
	if !open || r.several == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	w := &r.watch
	if w.timer == nil && !w.work.Closed() {
		w.pause = watchAfter
		w.timer = time.AfterFunc(w.pause, r.forgetWithoutKeys)
	}
}

// Close ends the watch and returns when it has ended.
func (r *Router) Close() {
	w := &r.watch
	w.work.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
	}
}

// forgetWithoutKeys forgets the servers without keys among those that do not respond. While
// others do not it looks again.
func (r *Router) forgetWithoutKeys() {
	w := &r.watch
	if !w.work.Begin() {
		return
	}
	defer w.work.End()
	r.mu.Lock()
	silent := r.unresponsive()
	r.mu.Unlock()
	if len(silent) > 0 {
		serving, err := r.serving()
		for _, b := range silent {
			if err == nil && !serving[b.server] {
				r.forget(b)
			}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	w.timer = nil
	if len(r.unresponsive()) > 0 && !w.work.Closed() {
		w.pause = min(2*w.pause, watchAtMost)
		w.timer = time.AfterFunc(w.pause, r.forgetWithoutKeys)
	}
}

// unresponsive returns the batchers of the servers that do not respond. The caller holds mu.
func (r *Router) unresponsive() (silent []*batcher) {
	for _, b := range r.byServer {
		if b.breaker.Open() {
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
func (r *Router) forget(batchers ...*batcher) {
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
		b.breaker.Retire()
	}
}
