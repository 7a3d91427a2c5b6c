package script_test

import (
	"context"
	"testing"

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
		db := free.borrow(t)
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

// borrow returns a database for the time of a test.
func (free freeDatabases) borrow(t *testing.T) *database {
	db := <-free
	t.Cleanup(func() {
		db.client.FlushDB(context.Background())
		free <- db
	})
	return db
}

// TestRedisStore has the scripts read the server's own time.
func TestRedisStore(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	storetest.RunSome(t, func(t *testing.T) storetest.Subject {
		return storetest.OnServerTime(t, newStore(client), client)
	})
}
