// Package ratetestredis has a Redis within the process of a test, for code that makes
// a store of its own, and for tests that look at its keys. It is a miniredis whose
// clock, script time and expiries are moved together, by [Redis.Advance].
//
// Only programs that import this package depend on miniredis. It is good for tests of
// your code, and no proof that scripts are right: rategen's own tests run on real
// servers.
package ratetestredis

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime"
)

// A Redis is a miniredis for a test, whose time is moved by Advance. Its methods may be
// called from several goroutines.
type Redis struct {
	server *miniredis.Miniredis
	t      testing.TB
	moved  atomic.Int64 // by Advance
}

// start is when the clock begins: far from today, so that times of other clocks are
// noticed.
var start = time.Date(2100, time.January, 1, 0, 0, 0, 0, time.UTC)

// bubbles is after the times of all bubbles of testing/synctest, which begin in the
// year 2000, and before all others.
var bubbles = time.Date(2020, time.January, 1, 0, 0, 0, 0, time.UTC)

// patience is how long a store waits for an answer, so that a busy machine does not
// look like a Redis that is gone.
const patience = 30 * time.Second

// New starts a Redis, which listens at Addr and is closed when the test ends. Its
// clock begins in the year 2100 and stands still until Advance moves it. In a bubble
// of testing/synctest, which cannot wait for the network, it fails the test: use
// [github.com/rategen/rategen/runtime/ratetest.New] there.
func New(t testing.TB) *Redis {
	t.Helper()
	if time.Now().Before(bubbles) {
		t.Fatalf("ratetestredis: a bubble of testing/synctest cannot wait for the network: use ratetest.New, or leave the bubble")
	}
	r := &Redis{server: miniredis.NewMiniRedis(), t: t}
	r.server.SetTime(start)
	if err := r.server.Start(); err != nil {
		t.Fatalf("ratetestredis: %v", err)
	}
	t.Cleanup(r.server.Close)
	return r
}

// Addr returns where the Redis listens, for clients.
func (r *Redis) Addr() string { return r.server.Addr() }

// Keys returns all keys, sorted.
func (r *Redis) Keys() []string { return r.server.Keys() }

// Store returns a store on a client of its own, both closed when the test ends. It
// asks Redis about every call, since by the process's clock it could not tell when a
// refusal is over, and it waits 30 s for an answer. A store that the code under test
// makes itself needs the same:
//
//	runtime.NewRedisStore(client, runtime.WithRefusalMemory(0), runtime.WithTimeout(30*time.Second))
func (r *Redis) Store(opts ...runtime.RedisOption) *runtime.RedisStore {
	client := redis.NewClient(runtime.TuneRedis(&redis.Options{
		Addr: r.Addr(), DialTimeout: patience, ReadTimeout: patience, WriteTimeout: patience,
	}))
	store := runtime.NewRedisStore(client, append([]runtime.RedisOption{
		runtime.WithRefusalMemory(0), runtime.WithTimeout(patience),
	}, opts...)...)
	r.t.Cleanup(func() {
		_ = store.Close()
		_ = client.Close()
	})
	return store
}

// Now returns the time by which Redis counts.
func (r *Redis) Now() time.Time { return start.Add(time.Duration(r.moved.Load())) }

// farthest is how far Advance moves the clock in all. Twice as far, a time in
// nanoseconds would no longer fit into 64 bits.
const farthest = 100 * 365 * 24 * time.Hour

// Advance moves the clock of Redis by d, which is not negative, and by at most 100
// years in all. Keys whose time to live is over are gone.
//
// Processes renew the permits of a concurrency limit by their own clocks. So permits
// lapse when Advance moves on by a window, as if their process had died. A call that
// waits for its turn does so in real time.
func (r *Redis) Advance(d time.Duration) {
	r.t.Helper()
	if d < 0 {
		r.t.Fatalf("ratetestredis: Advance(%v): a clock does not go back", d)
	}
	if moved := time.Duration(r.moved.Load()); d > farthest-moved {
		r.t.Fatalf("ratetestredis: Advance(%v): a clock moves by at most 100 years in all, and this one has moved by %v", d, moved)
	}
	r.server.SetTime(start.Add(time.Duration(r.moved.Add(int64(d)))))
	// After the time: a key must not be gone while the time it counts by goes on.
	r.server.FastForward(d)
}
