package runtime

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime/internal/batch"
	"github.com/rategen/rategen/runtime/internal/denials"
	"github.com/rategen/rategen/runtime/internal/failure"
	"github.com/rategen/rategen/runtime/internal/route"
	"github.com/rategen/rategen/runtime/internal/server"
	"github.com/rategen/rategen/runtime/internal/terms"
)

const (
	// DefaultTimeout is how long a call waits for Redis by default.
	DefaultTimeout = 50 * time.Millisecond
	// DefaultDenialMemory is how long a [RedisStore] trusts a denial by default.
	DefaultDenialMemory = time.Second
)

// A RedisStore keeps counts in Redis, where every process that uses the same
// Redis and namespace shares them. One Lua script decides all limits of a call,
// by the clock of Redis. Concurrent calls to the same server are sent together,
// in batches. It needs Redis 6.2 or later or Valkey, standalone, with Sentinel
// or as a cluster.
//
// On a cluster the keys of one call may lie in different slots, which no script
// can span. Then each part of the call is charged by a script of its own, all at
// the same time, and given back if another part has no room. Another caller may
// be denied by a part that is given back a moment later, and a [Rule.Block] then
// blocks it; and a turn in a line is not given back once somebody is behind it.
// Nobody is admitted too much. If the process dies in that moment, or Redis does not
// answer, the part stays charged until it leaves the window. A hash tag in the prefix,
// such as {orders}:, puts all keys of a rule in one slot, and so in one script.
//
// On a cluster or ring the clients of the single servers send the scripts: add
// hooks that are to see them by OnNewNode.
//
// A proxy that shards keys over several servers sends a script to the server of
// its first key, and limits would not hold. So the first batch that several keys
// share has a store on a client of a single server check that, by some keys of
// its own that expire within seconds. If it is such a proxy the store decides
// nothing any more: its errors are of [ClassSharded], and failure policies hold.
//
// With a client that has ContextTimeoutEnabled set, see [TuneRedis], a caller
// that is alone may send its call in its own goroutine, which is quicker. It
// then sees the end of its context when the answer is there, within the store's
// timeout. Other callers see a deadline in time, and a cancellation within 5 ms
// of their arrival, or at once later on.
type RedisStore struct {
	client    redis.UniversalClient
	cfg       batch.Config
	router    *route.Router
	watch     *server.MemoryWatch // nil: nobody watches Redis's memory
	sharding  *server.Sharding    // nil: there are several servers
	failures  [failure.Classes]atomic.Int64
	listeners listeners // the limiters on the store
}

// A RedisOption configures a [RedisStore].
type RedisOption func(*RedisStore)

// WithTimeout sets how long a call waits for Redis before its failure policy
// decides, whatever the timeouts and retries of the client are. The default is
// [DefaultTimeout], which 0 and less stand for too. A call that gave up may
// still be charged, once.
func WithTimeout(d time.Duration) RedisOption {
	return func(s *RedisStore) {
		if s.cfg.Timeout = d; d <= 0 {
			s.cfg.Timeout = DefaultTimeout
		}
	}
}

// WithDenialMemory sets for how long the store trusts a denial: until its
// RetryAfter is over, but for no longer than d, the store denies equal calls on
// the key by itself. Then one call asks Redis again, and the others go by the
// denial until that is answered. So for d, and one more answer, the store may
// miss that another process has reset the key or refunded a charge; its own
// resets and refunds, and a raised max, it sees at once. On a cluster or ring, where
// what denied a call may be given back in a moment, d is 50 ms at most. While Redis does not
// respond a denial holds until its RetryAfter is over, whatever the failure
// policy. The default is [DefaultDenialMemory]; with 0 Redis is asked about
// every call.
func WithDenialMemory(d time.Duration) RedisOption {
	return func(s *RedisStore) {
		if s.cfg.Denials = nil; d > 0 {
			s.cfg.Denials = denials.New(d)
		}
	}
}

// NewRedisStore returns a store on client, which stays the caller's to close. It
// takes a client that is no [redis.ClusterClient] or [redis.Ring] for one of a
// single server, so a cluster's must not be wrapped in a type of another name.
func NewRedisStore(client redis.UniversalClient, opts ...RedisOption) *RedisStore {
	s := &RedisStore{client: client}
	s.cfg.Timeout, s.cfg.Denials = DefaultTimeout, denials.New(DefaultDenialMemory)
	for _, opt := range opts {
		opt(s)
	}
	s.cfg.Changed = func(node string, open bool) {
		if e := s.listeners.Load(); e != nil {
			e.breaker(node, open)
		}
	}
	s.cfg.SteppedBack = func(node string, by time.Duration) {
		if e := s.listeners.Load(); e != nil {
			e.steppedBack(node, by)
		}
	}
	s.cfg.Kept = func(err error) { s.router.Count(err, 1) }
	s.cfg.Panicked = func(value any) {
		if e := s.listeners.Load(); e != nil {
			e.panicked("redis client", value)
		}
	}
	if checkSharding {
		s.sharding = newShardingCheck(s)
	}
	s.router = route.New(client, &s.cfg)
	s.router.Refuses = func() error {
		if s.sharding.Found() {
			return server.ErrSharded
		}
		return nil
	}
	s.router.Undecided = func(err error, calls int) { s.failures[ClassOf(err)].Add(int64(calls)) }
	return s
}

// attach makes the store report to e what happens, from then on.
func (s *RedisStore) attach(e *events) {
	if s.listeners.add(e) {
		advise(s.client, e)
	}
	if s.watch != nil {
		s.watch.Begin()
	}
}

// detach ends what attach began.
func (s *RedisStore) detach(e *events) { s.listeners.remove(e) }

// Close ends what the store has started, the watch of [WithMemoryWatch], a check
// whether keys are sharded and a look for nodes that have left, and returns when they have ended: at once, or
// when they have given up on a Redis that does not respond, which takes a second
// or two, and longer on a cluster whose client waits longer. Calls are decided as
// before; the client stays open.
func (s *RedisStore) Close() error {
	if s.watch != nil {
		s.watch.Close()
	}
	s.router.Close()
	if s.sharding != nil {
		s.sharding.Close()
	}
	return nil
}

// leases implements leaser.
func (*RedisStore) leases() {}

// A recaller is a store that remembers what it has denied.
type recaller interface{ denials() *denials.Memory }

func (s *RedisStore) denials() *denials.Memory { return s.cfg.Denials }

// Take implements [Store]. The limiter on the store has asked its memory of denials.
func (s *RedisStore) Take(ctx context.Context, calls []terms.Call) error {
	return s.router.Take(ctx, calls)
}

// Peek implements [Store].
func (s *RedisStore) Peek(ctx context.Context, calls []terms.Call) error {
	return s.router.Peek(ctx, calls)
}

// Settle implements [Store].
func (s *RedisStore) Settle(ctx context.Context, charges []terms.Charge) error {
	return s.router.Settle(ctx, charges)
}

// Renew implements [Store].
func (s *RedisStore) Renew(ctx context.Context, calls []terms.Call) error {
	return s.router.Renew(ctx, calls)
}

// Hold implements [Store].
func (s *RedisStore) Hold(ctx context.Context, charges []terms.Charge) error {
	return s.router.Hold(ctx, charges)
}

// Reset implements [Store].
func (s *RedisStore) Reset(ctx context.Context, charges []terms.Charge) error {
	return s.router.Reset(ctx, charges)
}

// Failures returns how many calls the store has not decided, and how many charges it
// has not settled or given back, since it was made, by error class. Classes without any
// are left out.
func (s *RedisStore) Failures() map[ErrorClass]int64 {
	counts := make(map[ErrorClass]int64)
	for class := range s.failures {
		if n := s.failures[class].Load(); n > 0 {
			counts[ErrorClass(class)] = n
		}
	}
	return counts
}
