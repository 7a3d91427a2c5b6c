package runtime_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/storetest"
)

// century is a time that no test reaches by itself, so that Redis expires
// nothing of a test that sets the clock.
var century = time.Date(2100, time.January, 1, 0, 0, 0, 123456000, time.UTC)

func TestMemoryStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) storetest.Subject {
		var clock atomic.Int64
		clock.Store(century.UnixMicro())
		store := runtime.NewMemoryStore()
		store.SetClock(clock.Load)
		return storetest.Subject{
			Store: store, Now: clock.Load, Exact: true,
			Advance: func(d time.Duration) { clock.Add(d.Microseconds()) },
		}
	})
}

// Each test of the suite has a database with a clock of its own.
func TestRedisStoreWithInjectedClock(t *testing.T) {
	t.Parallel()
	free := databases(t)
	storetest.RunFew(t, func(t *testing.T) storetest.Subject {
		db := free.one(t)
		return onDatabase(t, db.client, db.store)
	})
}

// A database is an empty one of a server, with stores that read the time from one of its keys.
type database struct {
	client      *redis.Client
	store, wide *runtime.RedisStore // wide has scripts that know all algorithms
}

// freeDatabases are those that no test uses now.
type freeDatabases chan *database

// databases starts a server and returns its databases.
func databases(t *testing.T) freeDatabases {
	server := redistest.Start(t)
	free := make(freeDatabases, 16)
	for i := range cap(free) {
		db := &database{client: server.Client(t, func(o *redis.Options) { o.DB = i })}
		db.store, db.wide = timed(db.client, nil), timed(db.client, nil)
		db.wide.Wide()
		free <- db
	}
	return free
}

// one returns a database for the time of a test.
func (free freeDatabases) one(t *testing.T) *database {
	db := <-free
	t.Cleanup(func() {
		db.client.FlushDB(context.Background())
		free <- db
	})
	return db
}

// timed returns a store whose scripts, changed by change if that is not nil, read their time
// from a key.
func timed(client *redis.Client, change func(string) string) *runtime.RedisStore {
	store := runtime.NewRedisStore(client, patient, runtime.Beside(time.Minute))
	store.SetScript(change)
	return store
}

// injected returns a subject on a timed store of its own.
func injected(t *testing.T, client *redis.Client, change func(string) string) storetest.Subject {
	return onDatabase(t, client, timed(client, change))
}

// onDatabase returns a subject on a timed store, on which it is the next century.
func onDatabase(t *testing.T, client *redis.Client, store *runtime.RedisStore) storetest.Subject {
	now := century.UnixMicro()
	set := func() {
		ok(t, expireAll.Run(t.Context(), client, []string{runtime.ClockKey}, now, storetest.Prefix(t)+"*").Err())
	}
	set()
	return storetest.Subject{
		Store: store, Exact: true,
		Now: func() int64 { return now },
		Advance: func(d time.Duration) {
			now += d.Microseconds()
			set()
		},
	}
}

func TestRedisStore(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	storetest.Run(t, func(t *testing.T) storetest.Subject { return onServerTime(t, client, client) })
}

func testStoreOnCluster(t *testing.T, cluster *redistest.Cluster) {
	client, node := cluster.Client(t), cluster.Nodes[0].Client(t)
	storetest.Run(t, func(t *testing.T) storetest.Subject { return onServerTime(t, client, node) })
}

// onServerTime returns a subject on the clock of a server, which all servers
// of this machine share.
func onServerTime(t *testing.T, client redis.UniversalClient, clock *redis.Client) storetest.Subject {
	now := func() int64 {
		at, err := clock.Time(context.Background()).Result()
		ok(t, err)
		return at.UnixMicro()
	}
	return storetest.Subject{
		Store: runtime.NewRedisStore(client, patient, runtime.Beside(time.Minute)),
		Now:   now,
		Advance: func(d time.Duration) {
			for until := now() + d.Microseconds(); ; {
				left := time.Duration(until-now()) * time.Microsecond
				if left <= 0 {
					return
				}
				time.Sleep(left)
			}
		},
	}
}

// Redis's clock steps back by an hour, or a replica is promoted whose clock is behind. An
// active key admits calls again at once, lives no longer for it, and the step is reported
// once.
func TestClockStepsBack(t *testing.T) {
	t.Parallel()
	const window = time.Minute // long enough for nothing to be renewed meanwhile
	client := redistest.Start(t).Client(t)
	subject := injected(t, client, nil)
	var log lines
	limiter := runtime.New(subject.Store, log.Logger())
	t.Cleanup(func() { _ = limiter.Close() })
	var limits []runtime.Limit
	for name, rule := range modelRules() {
		if rule.Period != runtime.NoPeriod {
			continue // which ends later than any step here
		}
		rule.Name, rule.Window, rule.Max, rule.Burst, rule.Wait = name, window, 10, 0, 0
		if rule.Reserve > 0 {
			rule.Reserve = rule.Window // else it is renewed meanwhile
		}
		rule.Prefix = strings.ReplaceAll(t.Name()+":"+name, " ", "-") + ":"
		limits = append(limits, rule.Limit(nil))
	}
	admitted := func() (n int) {
		for _, limit := range limits {
			n += passing(t, limiter, limit, 10)
		}
		return n
	}
	first := admitted()
	for _, step := range []struct {
		back            time.Duration
		admitted, lines int
	}{
		{90 * time.Millisecond, 0, 0},
		{time.Hour, first, 1},
	} {
		subject.Advance(-step.back)
		equal(t, fmt.Sprintf("%v back: admitted", step.back), admitted(), step.admitted)
		equal(t, fmt.Sprintf("%v back: lines", step.back), strings.Count(log.String(), "clock of the rate limit store stepped back"), step.lines)
		keys := client.Keys(t.Context(), t.Name()+":*").Val()
		if len(keys) == 0 {
			t.Fatal("no keys")
		}
		for _, key := range keys {
			if lives := expireTime(t.Context(), client, key) - time.Duration(subject.Now())*time.Microsecond; lives > window*6/5 {
				t.Errorf("%v back: %s lives for %v", step.back, key, lives)
			}
		}
	}
}
