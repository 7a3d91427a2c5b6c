package redis

import (
	"context"
	"errors"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/script"
	"github.com/rategen/rategen/runtime/rediswire"
)

// maxBatchers is how many batchers there may be before those of servers that
// have left the cluster are forgotten.
const maxBatchers = 256

// A search is the first time that the client asks the cluster for its servers.
type search struct {
	done chan struct{}
	err  error
}

// groupOf returns what scripts are divided by: the slots of a cluster, and
// nothing on a server of a ring.
func (r *Router) groupOf(slot int) int {
	if r.bySlot == nil {
		return 0
	}
	return slot
}

// batcher returns the batcher of the server that a key is on, to the best of the
// client's knowledge.
func (r *Router) batcher(ctx context.Context, key []byte, slot int) (*batcher, error) {
	if r.only != nil {
		return r.only, nil
	}
	var known *batcher
	if r.bySlot != nil {
		if known = r.bySlot[slot].Load(); known != nil && !known.breaker.Open() {
			return known, nil
		}
	}
	if !r.ready.Load() {
		err := r.learn(ctx, string(key))
		if err != nil {
			return nil, err
		}
	}
	server, err := r.several.Find(ctx, string(key))
	if err != nil {
		return nil, err
	}
	b := r.batcherOf(server)
	if r.bySlot != nil && b != known {
		r.bySlot[slot].CompareAndSwap(known, b)
	}
	return b, nil
}

func (r *Router) batcherOf(server rediswire.Server) *batcher {
	var unused []*batcher
	r.mu.Lock()
	b := r.byServer[server]
	if b == nil {
		if len(r.byServer) >= maxBatchers {
			unused = r.unused()
		}
		b = newBatcher(r, server)
		r.byServer[server] = b
	}
	r.mu.Unlock()
	r.forget(unused...)
	return b
}

// server returns a cluster's server, or nil if the client does not know it.
func (r *Router) server(ctx context.Context, address string) rediswire.Server {
	if r.cluster == nil {
		return nil
	}
	server := r.known(address)
	if server != nil {
		return server
	}
	masters, _ := r.cluster.Masters(ctx)
	for _, server := range masters {
		r.batcherOf(server)
	}
	return r.known(address)
}

// known returns a server that calls have gone to.
func (r *Router) known(address string) rediswire.Server {
	r.mu.Lock()
	defer r.mu.Unlock()
	for server := range r.byServer {
		if server.About().Address == address {
			return server
		}
	}
	return nil
}

// Load returns how many callers wait for a batch to any server, and how many
// batches are under way.
func (r *Router) Load() (waiting, batches int) {
	if r.only != nil {
		return r.only.Load()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range r.byServer {
		w, n := b.Load()
		waiting, batches = waiting+w, batches+n
	}
	return waiting, batches
}

// unused returns the batchers that no slot is known to be on. The servers of a ring are
// few and seldom replaced.
func (r *Router) unused() (unused []*batcher) {
	if r.bySlot == nil {
		return nil
	}
	used := make(map[*batcher]bool)
	for i := range r.bySlot {
		used[r.bySlot[i].Load()] = true
	}
	for _, b := range r.byServer {
		if !used[b] {
			unused = append(unused, b)
		}
	}
	return unused
}

// moved makes the next calls on a slot look its server up again, after an error of a batcher's
// server.
func (r *Router) moved(b *batcher, slot int, err error) {
	if r.bySlot != nil {
		r.bySlot[slot].CompareAndSwap(b, nil)
	}
	if errors.Is(err, rediswire.ErrClosed) {
		r.forget(b)
	}
}

// learn has the client load which servers there are. All callers wait for one answer, each for
// no longer than the timeout.
func (r *Router) learn(ctx context.Context, key string) error {
	arrived := clock.Now()
	permission, ok := r.searchBreaker.Allow(arrived)
	if !ok {
		return ErrOpen
	}
	r.mu.Lock()
	search := r.search
	if search == nil {
		search = r.begin(key)
	}
	r.mu.Unlock()

	limited, cancel := r.limited(ctx)
	defer cancel()
	var err error
	select {
	case <-search.done:
		err = search.err
	case <-limited.Done():
		err = contextError(limited)
	}
	settle(ctx, r.searchBreaker, permission, arrived, err)
	return err
}

func (r *Router) begin(key string) *search {
	s := &search{done: make(chan struct{})}
	r.search = s
	go func() {
		ctx, cancel := r.limited(context.Background())
		defer cancel()
		s.err = r.guard(func() error {
			_, err := r.several.Find(ctx, key)
			return err
		})
		if s.err == nil {
			r.ready.Store(true)
		} else if isContextError(s.err) && ctx.Err() != nil {
			s.err = contextError(ctx)
		}
		r.mu.Lock()
		r.search = nil
		r.mu.Unlock()
		close(s.done)
	}()
	return s
}

// guard returns an error for a panic in do, which uses the client.
func (r *Router) guard(do func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			r.cfg.Panicked(value)
			err = script.ErrPanicked
		}
	}()
	return do()
}
