package script_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/internal/testkit/redistest"
	_ "github.com/rategen/rategen/internal/testkit/seed" // rapid begins there
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/documents"
	"github.com/rategen/rategen/runtime/internal/goredis"
	redisengine "github.com/rategen/rategen/runtime/internal/redis"
	"github.com/rategen/rategen/runtime/internal/storetest"
	"github.com/rategen/rategen/runtime/rawstore"
)

// What stores and limiters are asked most often, and how.
var (
	quiet, closed, key          = limittest.Quiet, limittest.Closed, limittest.Key
	taken, refunded             = limittest.Taken, limittest.Refunded
	left, ok, eventually        = limittest.Left, limittest.OK, limittest.Eventually
	single, chargeOf, try, must = storetest.Single, storetest.ChargeOf, storetest.Try, storetest.Must
	take, peek                  = storetest.Take, storetest.Peek
)

// equal, between and same want a number, or another value, to be as it is to be.
func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	limittest.Equal(t, what, got, want)
}

func between[T ~int | ~int64](t testing.TB, what string, got, least, most T) {
	t.Helper()
	limittest.Between(t, what, got, least, most)
}

func same[T any](t testing.TB, what string, want, got T) {
	t.Helper()
	limittest.Same(t, what, want, got)
}

// mutationVariable names the variable of the environment that changes the text of every script:
// a JSON array of the text to replace and its replacement.
const mutationVariable = "RATEGEN_TEST_MUTATION"

var mutation = sync.OnceValue(func() (pair [2]string) {
	if text := os.Getenv(mutationVariable); text != "" {
		if err := json.Unmarshal([]byte(text), &pair); err != nil {
			panic(err)
		}
	}
	return pair
})

func mutated(text string) string {
	if pair := mutation(); pair[0] != "" {
		return strings.ReplaceAll(text, pair[0], pair[1])
	}
	return text
}

// newStore returns a store that waits for longer than a busy machine takes, and remembers no
// refusals. TestMutations changes its scripts.
func newStore(client redis.UniversalClient, changes ...func(*redisengine.Config)) runtime.Store {
	cfg := &redisengine.Config{
		Timeout: 20 * time.Second, Beside: time.Minute,
		Changed: func(string, bool) {}, Stepped: func(string, time.Duration) {}, Undecided: func(error, int) {},
		Panicked: func(value any) { panic(value) },
	}
	if mutation()[0] != "" { // stores without changes share their scripts, which take a while to make
		cfg.Library.Change = mutated
	}
	for _, change := range changes {
		change(cfg)
	}
	return rawstore.New(redisengine.New(goredis.New(client), cfg), nil)
}

// changing has a store change its scripts.
func changing(change func(string) string) func(*redisengine.Config) {
	return func(cfg *redisengine.Config) {
		cfg.Library.Change = func(text string) string { return change(mutated(text)) }
	}
}

// newLimiter returns a limiter on a store of its own, which fails closed.
func newLimiter(client redis.UniversalClient, changes ...func(*redisengine.Config)) *runtime.Limiter {
	return runtime.New(newStore(client, changes...), quiet, closed)
}

// ownRedis starts a server for a test that runs beside others, and returns a client of it.
func ownRedis(t *testing.T) *redis.Client {
	t.Helper()
	t.Parallel()
	return redistest.Start(t).Client(t)
}

func TestMain(m *testing.M) { limittest.Main(m) }

// Each test of the suite has a database with a clock of its own.
func TestRedisStoreWithInjectedClock(t *testing.T) {
	t.Parallel()
	free := databases(t)
	documents.RunFew(t, func(t *testing.T) documents.Subject {
		db := free.borrow(t)
		return onTime(t, db.client, db.store)
	})
}

// A database is an empty one of a server, with stores that read the time from one of its keys.
type database struct {
	client      *redis.Client
	store, wide runtime.Store // wide has scripts that know all algorithms, on a server without Lua's struct
}

// freeDatabases are those that no test uses now.
type freeDatabases chan *database

// databases starts a server and returns its databases.
func databases(t *testing.T) freeDatabases {
	server := redistest.Start(t)
	free := make(freeDatabases, 16)
	for i := range cap(free) {
		client := server.Client(t, func(o *redis.Options) { o.DB = i })
		wide := timed(client, func(cfg *redisengine.Config) {
			onTime := cfg.Library.Change
			cfg.Library.Wide, cfg.Library.Change = true, func(text string) string { return withoutStruct(onTime(text)) }
		})
		free <- &database{client, timed(client), wide}
	}
	return free
}

// withoutStruct has a script do without Lua's struct, which some servers do not have.
func withoutStruct(text string) string {
	changed := strings.Replace(text, "local struct = rawget(_G, 'struct')", "local struct", 1)
	if changed == text && strings.Contains(text, "SETRANGE") {
		panic("the script has changed: it would use struct")
	}
	return changed
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

// TestRedisStore has the scripts read the server's own time, as a user who has no right that is not documented, and
// name no key that is not declared.
func TestRedisStore(t *testing.T) {
	t.Parallel()
	rights := []any{"~*", "+hello", "+client", "+ping", "+eval", "+evalsha"}
	for _, command := range documentedRights(t) {
		rights = append(rights, "+"+command)
	}
	client := redistest.Start(t).ClientAs(t, rights...)
	store := newStore(client, declaring("ipairs(KEYS)"))
	documents.RunSome(t, func(t *testing.T) documents.Subject {
		return documents.OnServerTime(t, store, client)
	})
}
