package script_test

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
	"github.com/rategen/rategen/runtime/internal/batch"
	"github.com/rategen/rategen/runtime/internal/storetest"
)

// Each test of the suite has a database with a clock of its own.
func TestRedisStoreWithInjectedClock(t *testing.T) {
	t.Parallel()
	free := databases(t)
	storetest.RunFew(t, func(t *testing.T) storetest.Subject {
		db := free.one(t)
		return onTime(t, db.client, db.store)
	})
}

// A database is an empty one of a server, with stores that read the time from one of its keys.
type database struct {
	client      *redis.Client
	store, wide runtime.Store // wide has scripts that know all algorithms
}

// freeDatabases are those that no test uses now.
type freeDatabases chan *database

// databases starts a server and returns its databases.
func databases(t *testing.T) freeDatabases {
	server := redistest.Start(t)
	free := make(freeDatabases, 16)
	for i := range cap(free) {
		client := server.Client(t, func(o *redis.Options) { o.DB = i })
		free <- &database{client, timed(client, nil), timed(client, nil, func(cfg *batch.Config) { cfg.Library.Wide = true })}
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

func TestRedisStore(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	storetest.Run(t, func(t *testing.T) storetest.Subject {
		return storetest.OnServerTime(t, newStore(client), client)
	})
}

// TestClockStepsBack has Redis's clock step back by an hour, or a replica is promoted whose clock is behind. An
// active key then admits calls again at once, lives no longer for it, and the step is
// reported.
func TestClockStepsBack(t *testing.T) {
	t.Parallel()
	const window = time.Minute // long enough for nothing to be renewed meanwhile
	client := redistest.Start(t).Client(t)
	var steps atomic.Int64
	subject := onTime(t, client, timed(client, nil, func(cfg *batch.Config) {
		cfg.SteppedBack = func(string, time.Duration) { steps.Add(1) }
	}))
	limiter := runtime.New(subject.Store, quiet)
	t.Cleanup(func() { _ = limiter.Close() })
	var limits []runtime.Limit
	for name, rule := range storetest.Ways() {
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
		back     time.Duration
		admitted int
		reported bool
	}{
		{90 * time.Millisecond, 0, false},
		{time.Hour, first, true},
	} {
		subject.Advance(-step.back)
		equal(t, fmt.Sprintf("%v back: admitted", step.back), admitted(), step.admitted)
		equal(t, fmt.Sprintf("%v back: reported", step.back), steps.Load() > 0, step.reported)
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
