package route

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime/internal/batch"
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
		w.timer = time.AfterFunc(w.pause, r.lookForLeft)
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

// lookForLeft forgets the servers without keys among those that do not respond. While
// others do not it looks again.
func (r *Router) lookForLeft() {
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
	silent := r.silent()
	r.mu.Unlock()
	if len(silent) > 0 {
		if serving, err := r.serving(); err == nil {
			for _, b := range silent {
				if client, ok := b.Client.(*redis.Client); ok && !serving[client] {
					r.forget(b)
				}
			}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if w.timer = nil; len(r.silent()) > 0 && !w.closed {
		w.pause = min(2*w.pause, leavingAtMost)
		w.timer = time.AfterFunc(w.pause, r.lookForLeft)
	}
}

// silent returns the batchers of the servers that do not respond. The caller holds mu.
func (r *Router) silent() (silent []*batch.Batcher) {
	for _, b := range r.byServer {
		if b.Breaker.Open() {
			silent = append(silent, b)
		}
	}
	return silent
}

// serving returns the servers that have keys, by the newest that the client can learn.
func (r *Router) serving() (map[*redis.Client]bool, error) {
	serving := make(map[*redis.Client]bool)
	var mu sync.Mutex
	add := func(_ context.Context, client *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		serving[client] = true
		return nil
	}
	ctx, cancel := r.limited(context.Background())
	defer cancel()
	err := r.guard(func() error {
		if ring, ok := r.client.(*redis.Ring); ok {
			return ring.ForEachShard(ctx, add)
		}
		return r.cluster.ForEachMaster(ctx, add)
	})
	return serving, err
}

// forget forgets batchers. What is under way there goes on.
func (r *Router) forget(batchers ...*batch.Batcher) {
	for _, b := range batchers {
		r.mu.Lock()
		for client, other := range r.byServer {
			if other == b {
				delete(r.byServer, client)
			}
		}
		r.mu.Unlock()
		for i := range r.bySlot {
			r.bySlot[i].CompareAndSwap(b, nil)
		}
		b.Breaker.Retire()
	}
}
