package runtime

import (
	"context"
	"errors"
	"hash/maphash"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// DefaultTimeout is how long a call waits for Redis by default.
const DefaultTimeout = 50 * time.Millisecond

// A RedisStore keeps counts in Redis, where every process that uses the same
// Redis and namespace shares them. A call is at most one trip: one Lua script
// decides all its limits, by the clock of Redis. Calls that come while others
// are under way to the same server share the next trip. Redis 6.2 and later and
// Valkey will do, standalone, with Sentinel or as a cluster.
//
// On a cluster the keys of one call may lie in different slots, which no
// script can span. Then each slot's share is charged by a script of its own,
// all at the same time, and given back if another share has no room. Another
// caller may see the reserved share for the moment in between and be denied by
// it; it is never admitted too much. If the process dies in that moment the
// share stays charged until it leaves the window. A trip to a node of a cluster
// is one script for each slot, sent together. A hash tag in the prefix, such as
// {orders}:, puts all keys of a rule in one slot, and so in one script.
//
// On a cluster or ring the scripts are sent by the clients of the nodes: hooks
// that are to see them are added by OnNewNode.
//
// With a client that has ContextTimeoutEnabled set, see [TuneRedis], a caller
// that finds itself alone makes its trip in its own goroutine, which is quicker.
// It then sees the end of its context when the trip is over, within the store's
// timeout. With a timeout above 100 ms only callers whose contexts do not end
// travel so. All others see a deadline in time, and that they are cancelled
// within 5 ms of their coming, or later at once.
type RedisStore struct {
	client  redis.UniversalClient
	library library
	timeout time.Duration
	slot    func(key []byte) int // nil: one script can span all keys

	terminal terminal      // of the only server
	nodes    *nodes        // the terminals of several; nil: there is one
	aside    chan struct{} // holds a value for each command under way beside trips
	denials  *denials      // nil: none is remembered
	topology topology
	watch    *memoryWatch // nil: nobody watches Redis's memory
	failures [classes]atomic.Int64
	events   listeners // the limiters on the store
}

// A RedisOption configures a [RedisStore].
type RedisOption func(*RedisStore)

// WithTimeout sets how long a call waits for Redis before its failure policy
// decides, whatever the timeouts and retries of the client are. The default is
// [DefaultTimeout], which 0 and less stand for too. A call that gave up may
// still be charged, once.
func WithTimeout(d time.Duration) RedisOption {
	return func(s *RedisStore) {
		if s.timeout = d; d <= 0 {
			s.timeout = DefaultTimeout
		}
	}
}

// WithDenialMemory sets for how long the store trusts a denial: until the time
// that Redis named, but for no longer than d, it denies further calls on the key
// that cost as much by itself, without a trip. Then one call asks again, and the
// others trust the denial until that is answered. So the store may miss for d,
// and one trip, that another process has reset the key or refunded a charge; its
// own resets and refunds, and a raised max, it sees at once. While Redis gives no
// answer a denial holds until the time that was named, whatever the failure
// policy. The default is [DefaultDenialMemory]; 0 asks Redis about every call.
func WithDenialMemory(d time.Duration) RedisOption {
	return func(s *RedisStore) {
		if s.denials = nil; d > 0 {
			s.denials = newDenials(d)
		}
	}
}

// NewRedisStore returns a store on client, which stays the caller's to close. A
// client that is no [redis.ClusterClient] or [redis.Ring] is taken for one of a
// single server, so a cluster's must not be wrapped in a type of another name.
func NewRedisStore(client redis.UniversalClient, opts ...RedisOption) *RedisStore {
	s := &RedisStore{client: client, timeout: DefaultTimeout, denials: newDenials(DefaultDenialMemory)}
	switch client := client.(type) {
	case *redis.ClusterClient:
		s.slot = clusterSlot
		s.topology.client = client
	case *redis.Ring:
		seed := maphash.MakeSeed()
		s.slot = func(key []byte) int { return int(maphash.Bytes(seed, hashTag(key))) }
	}
	for _, opt := range opts {
		opt(s)
	}
	s.aside = make(chan struct{}, maxAside)
	s.terminal.open(s, s.client)
	s.nodes = newNodes(s, client)
	return s
}

// attach makes the store report to e, too, from then on.
func (s *RedisStore) attach(e *events) {
	if s.events.add(e) {
		advise(s.client, e)
	}
	if s.watch != nil {
		s.watch.begin()
	}
}

// detach ends what attach has begun.
func (s *RedisStore) detach(e *events) { s.events.remove(e) }

// Close ends what the store has started, the watch of [WithMemoryWatch], and
// returns when it has ended: at once, or when a Redis that does not answer has
// been given up on, which takes a second or two, and longer on a cluster whose
// client waits longer. Calls are decided as before; the client stays open.
func (s *RedisStore) Close() error {
	if s.watch != nil {
		s.watch.close()
	}
	return nil
}

// turned tells that a breaker has opened or closed.
func (s *RedisStore) turned(open bool) {
	if e := s.events.Load(); e != nil {
		e.breaker("", open)
	}
}

// Take implements [Store].
func (s *RedisStore) Take(ctx context.Context, calls []Call) error {
	if s.denials == nil {
		return s.decide(ctx, "take", calls)
	}
	return s.denials.spare(ctx, calls, s)
}

// Peek implements [Store].
func (s *RedisStore) Peek(ctx context.Context, calls []Call) error {
	return s.decide(ctx, "peek", calls)
}

// Refund implements [Store].
func (s *RedisStore) Refund(ctx context.Context, charges []Charge) error {
	if s.denials != nil {
		defer s.denials.forget(charges)
	}
	calls := make([]Call, len(charges))
	for i := range charges {
		calls[i].Charges = charges[i : i+1]
	}
	err := s.decide(ctx, "refund", calls)
	for i := range calls {
		err = errors.Join(err, calls[i].Err)
	}
	return err
}

// Reset implements [Store].
func (s *RedisStore) Reset(ctx context.Context, charges []Charge) error {
	ctx, cancel := s.withTimeout(ctx)
	defer cancel()
	if s.denials != nil {
		defer s.denials.forget(charges)
	}
	var failed error
	for i := range charges {
		err := s.unlink(ctx, string(charges[i].Key))
		s.count(err, 1)
		failed = errors.Join(failed, err)
	}
	return failed
}

func (s *RedisStore) unlink(ctx context.Context, key string) error {
	pass, ok := s.terminal.breaker.admit()
	if !ok {
		return errBroken
	}
	err := s.within(ctx, func() error { return s.client.Unlink(ctx, key).Err() })
	s.answered(pass, err)
	return err
}
