package runtime

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/peerstate"
	"github.com/rategen/rategen/runtime/internal/accounts"
	"github.com/rategen/rategen/runtime/internal/decide"
	"github.com/rategen/rategen/runtime/internal/findings"
	"github.com/rategen/rategen/runtime/internal/goredis"
	"github.com/rategen/rategen/runtime/internal/recall"
	redisengine "github.com/rategen/rategen/runtime/internal/redis"
	"github.com/rategen/rategen/runtime/internal/report"
	"github.com/rategen/rategen/runtime/internal/server"
	"github.com/rategen/rategen/runtime/rediswire"
)

const (
	// DefaultTimeout is how long a call waits for Redis by default.
	DefaultTimeout = 50 * time.Millisecond
	// DefaultRefusalMemory is how long a [RedisStore] trusts a refusal by default.
	DefaultRefusalMemory = time.Second
)

// A RedisStore keeps counts in Redis, where every process that uses the same Redis and
// namespace shares them. One Lua script decides all limits of a call, by the clock of Redis.
// Concurrent calls to the same server are sent together, in batches. It needs Redis 6.2 or
// later or Valkey, standalone, with Sentinel or as a cluster.
//
// On a cluster the keys of one call may lie in different slots, which no script can span. Then
// each part of the call is charged by a script of its own, all at the same time, and refunded
// if another part has no room. Another caller may be refused by a part that is refunded a moment
// later, and a [Rule.Block] then blocks it; and a turn in a line is not refunded once somebody
// is behind it. Nobody is admitted too much. If the process dies in that moment, or Redis does
// not answer, the part stays charged until it leaves the window. A hash tag in the prefix, such
// as {orders}:, puts all keys of a rule in one slot, and so in one script.
//
// On a cluster or ring the clients of the single servers send the scripts: add hooks that are
// to see them by OnNewNode.
//
// A proxy that shards keys over several servers sends a script to the server of its first key,
// and limits would not hold. So the first batch that several keys share has a store on a client
// of a single server check that, by some keys of its own that expire within seconds. If it is
// such a proxy the store decides nothing any more: its errors are of the class "sharded", and
// failure policies hold.
//
// With a client that has ContextTimeoutEnabled set, see [TuneRedis], a caller that is alone may
// send its call in its own goroutine, which is quicker. It then sees the end of its context
// when the answer is there, within the store's timeout. Other callers see a deadline in time,
// and a cancellation within 5 ms of their arrival, or at once later on.
type RedisStore struct {
	client    rediswire.Client
	cfg       redisengine.Config
	router    *redisengine.Router
	watch     *server.MemoryWatch // nil: nobody watches Redis's memory
	keeping   server.Keeping
	sharing   server.Peers
	peers     peerstate.Table
	failures  [decide.Classes]atomic.Int64
	listeners report.Listeners // the limiters on the store

	accounts   accounts.Accounts
	namespaces findings.Map[*Rule, string] // of the rules of limiters on it, each of the first
}

// A RedisOption configures a [RedisStore].
type RedisOption func(*RedisStore)

// WithTimeout sets how long a call waits for Redis before its failure policy decides, whatever
// the timeouts and retries of the client are. If d is 0 or less that is [DefaultTimeout], as it
// is without this option. A call that gave up may still be charged, once. It panics if d is
// below 10 µs, in which no Redis answers: a number without a unit is nanoseconds.
func WithTimeout(d time.Duration) RedisOption {
	if d > 0 && d < 10*time.Microsecond {
		panic(fmt.Sprintf("runtime: WithTimeout(%v): no Redis answers so soon: write a number with its unit, such as 50*time.Millisecond", d))
	}
	return func(s *RedisStore) {
		s.cfg.Timeout = d
		if d <= 0 {
			s.cfg.Timeout = DefaultTimeout
		}
	}
}

// WithRefusalMemory sets for how long the store trusts a refusal: until its RetryAfter is over,
// but for no longer than d, the store refuses equal calls on the key by itself. Then one call
// asks Redis again, and the others are refused until that is answered. So for d, and one more
// answer, the store may miss that another process has reset the key or refunded a charge; its
// own resets and refunds, and a raised max, it sees at once. On a cluster or ring, where what
// refused a call may be refunded in a moment, d is 50 ms at most. While Redis does not respond a
// refusal holds until its RetryAfter is over, whatever the failure policy. The default is
// [DefaultRefusalMemory]; with 0 Redis is asked about every call.
func WithRefusalMemory(d time.Duration) RedisOption {
	return func(s *RedisStore) {
		s.cfg.Refusals = nil
		if d > 0 {
			s.cfg.Refusals = recall.New(d)
		}
	}
}

// NewRedisStore returns a store on client, which stays the caller's to close. Make one for all
// limiters of a program: what calls on one store give back the next call on it finds at once, and
// one on another store about a millisecond later. A second store on a client with limiters is a
// finding of these. It takes a client that is no [redis.ClusterClient] or [redis.Ring] for one of a
// single server, so a cluster's must not be wrapped in a type of another name.
func NewRedisStore(client redis.UniversalClient, opts ...RedisOption) *RedisStore {
	return newRedisStore(goredis.New(client), opts...)
}

func newRedisStore(client rediswire.Client, opts ...RedisOption) *RedisStore {
	s := &RedisStore{client: client}
	s.cfg.Timeout, s.cfg.Refusals = DefaultTimeout, recall.New(DefaultRefusalMemory)
	for _, opt := range opts {
		opt(s)
	}
	s.cfg.Changed = func(node string, open bool) { s.events().Breaker(node, open) }
	s.cfg.Stepped = func(node string, by time.Duration) { s.events().Log.Stepped(node, by) }
	s.cfg.Undecided = func(err error, calls int) { s.failures[ClassOf(err)].Add(int64(calls)) }
	s.cfg.Panicked = func(value any) { s.events().Log.Panic("redis client", value) }
	s.keeping.Client, s.keeping.Panicked = client, s.cfg.Panicked
	s.sharing.Client, s.sharing.Timeout, s.sharing.Panicked = client, s.cfg.Timeout, s.cfg.Panicked
	s.peers.Share, s.peers.Drop = s.sharing.Share, s.sharing.Drop
	if checkSharding {
		s.cfg.Sharding = newShardingCheck(s)
	}
	s.router = redisengine.New(client, &s.cfg)
	s.accounts.Store, s.accounts.Client = s.router, client
	return s
}

// checkSharding has new stores check for sharding.
var checkSharding = true

// newShardingCheck returns the check of a store, which begins when a batch is shared; or nil,
// if the client itself knows several servers.
func newShardingCheck(s *RedisStore) *server.Sharding {
	if _, several := s.client.(rediswire.Cluster); several {
		return nil
	}
	return &server.Sharding{
		Client:  s.client,
		Library: &s.cfg.Library,
		Again:   time.Second,
		Sharded: func() { s.events().Log.Alert(report.Sharded, 0) },
		Unknown: func(err error) {
			s.events().Log.Write(slog.LevelDebug, "it is not known whether a proxy shards keys", 0, slog.Any("error", err))
		},
		Panicked: func(value any) { s.cfg.Panicked(value) },
	}
}

// attach makes the store report to e what happens, until e is removed from the listeners.
func (s *RedisStore) attach(e *report.Events) {
	first := s.listeners.Add(e)
	if first && s.isSecond() {
		e.Log.Find(report.TwoStores, "", "")
	}
	if set, now := s.client.Advice(); set != "" {
		e.Log.ReadsTooLong(first, set, now)
	}
	s.watch.Begin()
}

// listening are stores with limiters: the last one on each client.
var listening struct {
	mu     sync.Mutex
	stores []weak.Pointer[RedisStore]
}

// isSecond reports whether the store's client has another store with limiters.
func (s *RedisStore) isSecond() bool {
	listening.mu.Lock()
	defer listening.mu.Unlock()
	second := false
	listening.stores = slices.DeleteFunc(listening.stores, func(p weak.Pointer[RedisStore]) bool {
		other := p.Value()
		if other == nil || other == s {
			return true
		}
		same := goredis.Same(s.client, other.client)
		second = second || same && other.listeners.Any()
		return same && !other.listeners.Any()
	})
	if !second {
		listening.stores = append(listening.stores, weak.Make(s))
	}
	return second
}

// events returns those that reach the limiters on the store.
func (s *RedisStore) events() *report.Events { return s.listeners.Events() }

// Close ends the goroutines that the store has started, and returns when they have ended: at
// once, or when they have given up on a Redis that does not respond, which takes a second or
// two, and longer on a cluster whose client waits longer. Calls are decided as before; the
// client stays open.
func (s *RedisStore) Close() error {
	s.watch.Close()
	s.router.Close()
	s.keeping.Close()
	s.sharing.Close()
	if s.cfg.Sharding != nil {
		s.cfg.Sharding.Close()
	}
	return nil
}

func (s *RedisStore) backend() backend {
	if s == nil || s.router == nil {
		return backend{}
	}
	return backend{Store: s.router, redis: s, builtIn: true, leases: true}
}
