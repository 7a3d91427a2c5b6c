// Package faults does to a Redis what happens to one in production, and records
// what callers of a limiter see meanwhile. Tests judge the records, and a
// command prints them as a table.
package faults

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// A Fault is one thing that happens to a Redis.
type Fault struct {
	Name string
	// Where is the kind of Redis that it happens to.
	Where Where
	// Failovers is how many times counts may be lost: with a server that
	// forgets, or one that takes over and has not got the last of them.
	Failovers int64
	// Heals reports that nobody ends the fault, the servers do. What lasts
	// "from the end of the fault" then counts from its beginning.
	Heals bool
	// Classes are error classes, at least one of which the calls have that the
	// store does not decide. Without any it may decide them all.
	Classes []string
	// Quick reports whether the fault belongs to a short round.
	Quick bool

	set func(testing.TB, clients) *site
}

// clients is how stores on a Redis are made: by go-redis with the default options or as
// [runtime.TuneRedis] has them, or by another client.
type clients struct {
	tuned bool
	open  Open // nil: by go-redis
}

// Open makes a store on what go-redis would reach with some options, by another client,
// which the cleanup closes.
type Open func(tb testing.TB, o *redis.UniversalOptions, opts ...runtime.RedisOption) *runtime.RedisStore

// A connect makes a store as a user would make one.
type connect func(opts ...runtime.RedisOption) *runtime.RedisStore

// store returns what makes stores by a client of go-redis, or in its place by another with
// the same options.
func (c clients) store(tb testing.TB, client func() redis.UniversalClient, o *redis.UniversalOptions) connect {
	return func(opts ...runtime.RedisOption) *runtime.RedisStore {
		if c.open != nil {
			return c.open(tb, o, opts...)
		}
		return runtime.NewRedisStore(client(), opts...)
	}
}

func (c clients) tune(o *redis.Options) {
	if c.tuned {
		runtime.TuneRedis(o)
	}
}

// Where is a kind of Redis.
type Where string

// The kinds of Redis.
const (
	Standalone Where = "standalone"
	Network    Where = "standalone behind a proxy"
	Cluster    Where = "cluster of 3 masters and 3 replicas"
	Sentinel   Where = "3 servers under 3 sentinels"
)

// All returns every fault.
func All() []Fault {
	var all []Fault
	for _, group := range [][]Fault{network, standalone, clusters, sentinels} {
		all = append(all, group...)
	}
	return all
}

// Product returns which server the faults happen to, with its version.
func Product(tb testing.TB) string { return redistest.Start(tb).Product() }

// A site is a Redis and what is going to happen to it.
type site struct {
	connect connect
	// tags are the hash tags of the keys. On a cluster they lie on different
	// masters.
	tags  []string
	begin func()
	end   func() // nil if the fault heals
	// epoch returns how many elections there were, or is nil: who wins one takes over.
	epoch func() (int64, error)
}

func (s *site) elections(tb testing.TB) int64 {
	tb.Helper()
	if s.epoch == nil {
		return 0
	}
	n, err := s.epoch()
	if err != nil {
		tb.Errorf("elections: %v", err)
	}
	return n
}

const (
	// Every key admits perWindow calls in a window.
	window    = 500 * time.Millisecond
	perWindow = 20
)
