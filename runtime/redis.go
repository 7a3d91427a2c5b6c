package runtime

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// DefaultTimeout is how long a call waits for Redis by default.
const DefaultTimeout = 50 * time.Millisecond

// A RedisStore keeps counts in Redis, where every process that uses the same
// Redis and namespace shares them. A call is at most one trip: one Lua script
// decides all its limits, by the clock of Redis. Calls that come while others
// are under way share the next trip. Redis 6.2 and later and Valkey will do,
// standalone, with Sentinel or as a cluster.
//
// On a cluster the keys of one call may lie in different slots, which no
// script can span. Then each slot's share is charged by a script of its own,
// all at the same time, and given back if another share has no room. Another
// caller may see the reserved share for the moment in between and be denied by
// it; it is never admitted too much. If the process dies in that moment the
// share stays charged until it leaves the window. Keys of one slot use one
// trip there too: a hash tag in the prefix, such as {orders}:, puts all keys
// of a rule in one. Calls do not share trips on a cluster.
type RedisStore struct {
	client  redis.UniversalClient
	library library
	timeout time.Duration
	slot    func(key []byte) int // nil: one script can span all keys

	terminal terminal
	breaker  breaker
	denials  *denials // nil: none is remembered
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

// WithDenialMemory sets for how long the store believes a denial: until the
// time that Redis named, but for no longer than d, it denies further calls on
// the key that cost as much by itself, without a trip. Within d it may so miss
// that another process has reset the key or refunded a charge; its own resets
// and refunds, and a raised max, it sees at once. The default is
// [DefaultDenialMemory]; 0 asks Redis about every call.
func WithDenialMemory(d time.Duration) RedisOption {
	return func(s *RedisStore) {
		if s.denials = nil; d > 0 {
			s.denials = newDenials(d)
		}
	}
}

// NewRedisStore returns a store on client, which stays the caller's to close.
func NewRedisStore(client redis.UniversalClient, opts ...RedisOption) *RedisStore {
	s := &RedisStore{client: client, timeout: DefaultTimeout, denials: newDenials(DefaultDenialMemory)}
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
	s.terminal.store = s
	s.breaker.start = time.Now()
	return s
}

// Take implements [Store].
func (s *RedisStore) Take(ctx context.Context, calls []Call) error {
	if s.denials == nil {
		return s.decide(ctx, "take", calls)
	}
	return s.denials.spare(calls, func(calls []Call) error { return s.decide(ctx, "take", calls) })
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
		key := string(charges[i].Key)
		failed = errors.Join(failed, s.within(ctx, func() error { return s.client.Unlink(ctx, key).Err() }))
	}
	return failed
}

// decide executes calls by one script, or on a cluster by one for each slot.
func (s *RedisStore) decide(ctx context.Context, op string, calls []Call) error {
	if !s.breaker.admit() {
		return errBroken
	}
	if s.slot == nil {
		return s.share(ctx, op, calls)
	}
	ctx, cancel := s.withTimeout(ctx)
	defer cancel()
	if s.together(calls) {
		return s.execute(ctx, op, calls)
	}
	return s.decideApart(ctx, op, calls)
}

// answered tells the breaker what came of asking Redis. An error that Redis
// replied is an answer; one of the caller's context is none, and no failure
// either.
func (s *RedisStore) answered(err error) {
	var reply redis.Error
	switch {
	case err == nil || errors.As(err, &reply):
		s.breaker.succeeded()
	case !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded):
		s.breaker.failed()
	}
}

// share executes calls on trips shared with other callers, maxAboard of them at
// a time so that Redis is free for others in between.
func (s *RedisStore) share(ctx context.Context, op string, calls []Call) error {
	if len(calls) <= maxAboard {
		return s.terminal.travel(ctx, op, calls)
	}
	decided, last := false, error(nil)
	for part := range slices.Chunk(calls, maxAboard) {
		if err := s.terminal.travel(ctx, op, part); err != nil {
			last = err
			for i := range part {
				part[i].Err = err
			}
			continue
		}
		decided = true
	}
	if decided {
		return nil
	}
	return last
}

// execute executes calls by a script of their own.
func (s *RedisStore) execute(ctx context.Context, op string, calls []Call) error {
	t := new(ticket)
	t.done = make(chan struct{}, 1)
	t.write(op, calls)
	trip := new(trip)
	trip.take(t)
	err := s.within(ctx, func() error { return trip.make(ctx, s) })
	if err == nil {
		t.hand(calls)
	}
	s.answered(err)
	return err
}

// within runs do and gives up when the context ends, which go-redis by default
// does not. Then do may still be running.
func (s *RedisStore) within(ctx context.Context, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// withTimeout returns a context that ends with the store's timeout. Its cause
// tells that from the end of ctx, which is no failure of Redis's.
func (s *RedisStore) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, s.timeout, s.late())
}

// late is the error of a call that has waited for as long as it may.
func (s *RedisStore) late() error {
	return fmt.Errorf("redis gave no answer within %v", s.timeout)
}
