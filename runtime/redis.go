package runtime

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"time"

	"github.com/redis/go-redis/v9"
)

// DefaultTimeout is how long a call waits for Redis by default.
const DefaultTimeout = 50 * time.Millisecond

// A RedisStore keeps counts in Redis, where every process that uses the same
// Redis and namespace shares them. A call is one trip: one Lua script decides
// all its limits, by the clock of Redis. Redis 6.2 and later and Valkey will
// do, standalone, with Sentinel or as a cluster.
//
// On a cluster the keys of one call may lie in different slots, which no
// script can span. Then each slot's share is charged by a script of its own,
// all at the same time, and given back if another share has no room. Another
// caller may see the reserved share for the moment in between and be denied by
// it; it is never admitted too much. If the process dies in that moment the
// share stays charged until it leaves the window. Keys of one slot use one
// trip there too: a hash tag in the prefix, such as {orders}:, puts all keys
// of a rule in one.
type RedisStore struct {
	client  redis.UniversalClient
	script  script
	timeout time.Duration
	slot    func(key []byte) int // nil: one script can span all keys
}

// A RedisOption configures a [RedisStore].
type RedisOption func(*RedisStore)

// WithTimeout sets how long a call waits for Redis before its failure policy
// decides, whatever the timeouts and retries of the client are. The default is
// [DefaultTimeout]. A call that gave up may still be charged, once.
func WithTimeout(d time.Duration) RedisOption {
	return func(s *RedisStore) { s.timeout = d }
}

// NewRedisStore returns a store on client, which stays the caller's to close.
func NewRedisStore(client redis.UniversalClient, opts ...RedisOption) *RedisStore {
	s := &RedisStore{client: client, script: takeScript, timeout: DefaultTimeout}
	switch client.(type) {
	case *redis.ClusterClient:
		s.slot = clusterSlot
	case *redis.Ring:
		seed := maphash.MakeSeed()
		s.slot = func(key []byte) int { return int(maphash.Bytes(seed, hashTag(key))) }
	}
	for _, opt := range opts {
		opt(s)
	}
	return s
}

// Take implements [Store].
func (s *RedisStore) Take(ctx context.Context, calls []Call) error {
	return s.decide(ctx, "take", calls)
}

// Peek implements [Store].
func (s *RedisStore) Peek(ctx context.Context, calls []Call) error {
	return s.decide(ctx, "peek", calls)
}

// Refund implements [Store].
func (s *RedisStore) Refund(ctx context.Context, charges []Charge) error {
	calls := make([]Call, len(charges))
	for i := range charges {
		calls[i].Charges = charges[i : i+1]
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	var failed error
	for _, part := range s.parts(calls) {
		replies, err := s.run(ctx, "refund", part.calls)
		for _, reply := range replies {
			if e, ok := reply.(error); ok {
				err = e
			}
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// Reset implements [Store].
func (s *RedisStore) Reset(ctx context.Context, charges []Charge) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	var failed error
	for i := range charges {
		err := s.process(ctx, command{redis.NewCmd(ctx, "unlink", string(charges[i].Key))})
		failed = errors.Join(failed, err)
	}
	return failed
}

func (s *RedisStore) decide(ctx context.Context, operation string, calls []Call) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if s.slot != nil && !s.together(calls) {
		return s.decideApart(ctx, operation, calls)
	}
	replies, err := s.run(ctx, operation, calls)
	for i := range replies {
		calls[i].Err = calls[i].read(replies[i])
	}
	return err
}

// process runs cmd and gives up when the context ends, which go-redis by
// default does not. The command may then still be running.
func (s *RedisStore) process(ctx context.Context, cmd redis.Cmder) error {
	done := make(chan error, 1)
	go func() { done <- s.client.Process(ctx, cmd) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return fmt.Errorf("redis gave no answer within %v", s.timeout)
		}
		return ctx.Err()
	}
}
