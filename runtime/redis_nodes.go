package runtime

import (
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// nodes are the terminals of a store whose keys lie on several servers: one for
// each server, so that one which does not answer keeps nobody else waiting.
type nodes struct {
	store *RedisStore
	find  func(ctx context.Context, key string) (*redis.Client, error)

	// slots are the terminals of a cluster's slots as far as they are known;
	// nil for a ring, whose servers are no cluster's and know no slots.
	slots []atomic.Pointer[terminal]
	ready atomic.Bool // find answers at once

	mu        sync.Mutex
	terminals map[*redis.Client]*terminal
	search    *search // under way
}

// A search is the first time that somebody looks where a key is, for which the
// client asks the cluster.
type search struct {
	done chan struct{}
	err  error
}

// newNodes returns nil if the client is one of a single server.
func newNodes(s *RedisStore, client redis.UniversalClient) *nodes {
	n := &nodes{store: s, terminals: make(map[*redis.Client]*terminal)}
	switch c := client.(type) {
	case *redis.ClusterClient:
		n.find = c.MasterForKey
		n.slots = make([]atomic.Pointer[terminal], clusterSlots)
	case *redis.Ring:
		n.find = func(_ context.Context, key string) (*redis.Client, error) { return c.GetShardClientForKey(key) }
		n.ready.Store(true)
	default:
		return nil
	}
	return n
}

// slot returns what scripts are divided by: the slots of a cluster, and nothing
// on a server of a ring.
func (n *nodes) slot(slot int) int {
	if n.slots == nil {
		return 0
	}
	return slot
}

// terminal returns the terminal of the server that a key is on, to the best of
// the client's knowledge.
func (n *nodes) terminal(ctx context.Context, key []byte, slot int) (*terminal, error) {
	var known *terminal
	if n.slots != nil {
		if known = n.slots[slot].Load(); known != nil && !known.breaker.open() {
			return known, nil
		}
	}
	if !n.ready.Load() {
		if err := n.learn(ctx, string(key)); err != nil {
			return nil, err
		}
	}
	client, err := n.find(ctx, string(key))
	if err != nil {
		return nil, err
	}
	t := n.of(client)
	if n.slots != nil && t != known {
		n.slots[slot].CompareAndSwap(known, t)
	}
	return t, nil
}

// of returns the terminal of a server.
func (n *nodes) of(client *redis.Client) *terminal {
	n.mu.Lock()
	defer n.mu.Unlock()
	t := n.terminals[client]
	if t == nil {
		if len(n.terminals) >= maxTerminals {
			n.prune()
		}
		t = new(terminal)
		t.open(n.store, client)
		t.node = client
		n.terminals[client] = t
	}
	return t
}

// maxTerminals is how many terminals there may be before those of servers that
// have left the cluster are forgotten.
const maxTerminals = 256

// prune forgets the terminals that no slot is known to be on. What is under way
// there goes on. The servers of a ring are few and seldom replaced.
func (n *nodes) prune() {
	if n.slots == nil {
		return
	}
	used := make(map[*terminal]bool)
	for i := range n.slots {
		used[n.slots[i].Load()] = true
	}
	maps.DeleteFunc(n.terminals, func(_ *redis.Client, t *terminal) bool { return !used[t] })
}

// learn has the client ask which servers there are. All callers wait for one
// answer, each for no longer than the store's timeout.
func (n *nodes) learn(ctx context.Context, key string) error {
	breaker := n.store.terminal.breaker
	pass, ok := breaker.admit()
	if !ok {
		return errBroken
	}
	n.mu.Lock()
	search := n.search
	if search == nil {
		search = n.begin(key)
	}
	n.mu.Unlock()

	ctx, cancel := n.store.withTimeout(ctx)
	defer cancel()
	var err error
	select {
	case <-search.done:
		err = search.err
	case <-ctx.Done():
		err = ended(ctx)
	}
	n.store.answered(pass, err)
	return err
}

// begin begins a search.
func (n *nodes) begin(key string) *search {
	s := &search{done: make(chan struct{})}
	n.search = s
	go func() {
		ctx, cancel := n.store.withTimeout(context.Background())
		defer cancel()
		s.err = n.store.guard(func() error {
			_, err := n.find(ctx, key)
			return err
		})
		if s.err == nil {
			n.ready.Store(true)
		} else if contextual(s.err) && ctx.Err() != nil {
			s.err = ended(ctx)
		}
		n.mu.Lock()
		n.search = nil
		n.mu.Unlock()
		close(s.done)
	}()
	return s
}

// forget makes the next calls on the slots of a trip look where these are.
func (t *terminal) forget(trip *trip) {
	n := t.store.nodes
	if n == nil {
		return
	}
	for _, s := range trip.stops {
		if n.slots != nil && s.err != nil {
			n.slots[s.slot].CompareAndSwap(t, nil)
		}
		if errors.Is(s.err, redis.ErrClosed) {
			n.mu.Lock()
			delete(n.terminals, t.node)
			n.mu.Unlock()
		}
	}
}
