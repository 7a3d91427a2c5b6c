package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/testkit/faultproxy"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/decide"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// A classCase brings a server into a state in which it decides nothing.
type classCase struct {
	want    observe.ErrorClass
	name    string
	cause   func(t *testing.T, s *redistest.Server, admin *redis.Client)
	client  func(*redis.Options)
	options []runtime.RedisOption

	orBroken bool // calls may also be of ClassConnection, but for the first
}

// config is a cause that changes the server's configuration.
func config(pairs ...string) func(*testing.T, *redistest.Server, *redis.Client) {
	return func(t *testing.T, _ *redistest.Server, admin *redis.Client) {
		for i := 0; i < len(pairs); i += 2 {
			ok(t, admin.ConfigSet(context.Background(), pairs[i], pairs[i+1]).Err())
		}
	}
}

func script(text string) []runtime.RedisOption {
	return []runtime.RedisOption{runtime.Change(func(string) string { return text })}
}

// command is a cause that sends the server a command.
func command(args ...any) func(*testing.T, *redistest.Server, *redis.Client) {
	return func(t *testing.T, _ *redistest.Server, admin *redis.Client) {
		ok(t, admin.Do(context.Background(), args...).Err())
	}
}

var classCases = []classCase{
	{want: observe.ClassTimeout, name: "frozen", cause: func(_ *testing.T, s *redistest.Server, _ *redis.Client) { s.Pause() }},
	{want: observe.ClassDial, name: "refused", cause: func(_ *testing.T, s *redistest.Server, _ *redis.Client) { s.Kill() }},
	{want: observe.ErrorClass(decide.ClassPool), name: "in use", client: func(o *redis.Options) {
		o.PoolSize, o.PoolTimeout = 1, time.Millisecond
	}},
	{want: observe.ClassOOM, name: "noeviction", cause: config("maxmemory-policy", "noeviction", "maxmemory", "1")},
	{want: observe.ErrorClass(decide.ClassBusy), name: "endless script", cause: busy},
	{want: observe.ErrorClass(decide.ClassLoading), name: "starting", cause: loading},
	{want: observe.ClassReadOnly, name: "replica", cause: replica},
	{want: observe.ErrorClass(decide.ClassMasterDown), name: "orphan", cause: func(t *testing.T, s *redistest.Server, admin *redis.Client) {
		config("replica-serve-stale-data", "no")(t, s, admin)
		command("REPLICAOF", "127.0.0.1", "1")(t, s, admin)
	}},
	// Redis then closes the connection, which the next call may find only when
	// it has sent its own.
	{want: observe.ClassAuth, name: "no password", cause: config("requirepass", "secret"), orBroken: true},
	{want: observe.ClassAuth, name: "wrong password", cause: config("requirepass", "secret"), client: func(o *redis.Options) { o.Password = "guess" }},
	{want: observe.ClassAuth, name: "no right to run scripts", cause: command("ACL", "SETUSER", "default", "-eval", "-evalsha")},
	{want: observe.ClassAuth, name: "no right to the key", cause: command("ACL", "SETUSER", "default", "resetkeys", "~other:*")},
	{want: observe.ClassAuth, name: "no right to a command of the script", cause: command("ACL", "SETUSER", "default", "-time")},
	{want: observe.ClassAuth, name: "no right to a command of the algorithm", cause: command("ACL", "SETUSER", "default", "-zadd")},
	{want: observe.ClassWrongType, name: "foreign key", cause: command("SET", "class:", "mine")},
	{want: observe.ErrorClass(decide.ClassScript), name: "fails", options: script("error('boom')")},
	{want: observe.ErrorClass(decide.ClassScript), name: "does not compile", options: script("return return")},
	{want: observe.ErrorClass(decide.ClassScript), name: "replies nonsense", options: script("return {1}")},
}

func busy(t *testing.T, s *redistest.Server, admin *redis.Client) {
	config("lua-time-limit", "1")(t, s, admin)
	go admin.Eval(context.Background(), "while true do end", nil)
	other := s.Client(t)
	eventually(t, "the server is busy", func() bool { return redis.HasErrorPrefix(other.Ping(context.Background()).Err(), "BUSY") })
	t.Cleanup(func() { other.ScriptKill(context.Background()) })
}

// loading makes the server load for longer than the calls take.
func loading(_ *testing.T, s *redistest.Server, _ *redis.Client) { s.RestartLoading(40 * time.Second) }

func replica(t *testing.T, s *redistest.Server, admin *redis.Client) {
	s.Follow(t, redistest.Start(t))
	eventually(t, "the replica follows", func() bool {
		return strings.Contains(admin.Info(context.Background(), "replication").Val(), "master_link_status:up")
	})
}

// TestErrorClasses has real servers fail in every way and wants each failure to be named, in
// the error, in the store's count and to the observer, with every policy having its say.
func TestErrorClasses(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup // not parallel tests, since they only wait
	for _, test := range classCases {
		all.Go(func() {
			t.Run(fmt.Sprint(test.want, ", ", test.name), func(t *testing.T) { testErrorClass(t, test) })
		})
	}
	all.Wait()
}

func testErrorClass(t *testing.T, test classCase) {
	server := redistest.Start(t)
	if test.cause != nil {
		test.cause(t, server, server.Client(t))
	}
	// A store asks a server that may soon decide again and again, ever more
	// seldom. Of twenty seconds ten are left for the last time: where the process stood
	// still for three quarters of the time four were too few.
	timeout, patience := 20*time.Second, time.Minute
	switch test.want {
	case observe.ClassTimeout:
		timeout, patience = 500*time.Millisecond, 0
	case observe.ErrorClass(decide.ClassLoading): // or it would have to load for longer
		timeout = 8 * time.Second
	}
	client := server.Client(t, func(o *redis.Options) {
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout = patience, patience, patience
		runtime.TuneRedis(o)
		if test.client != nil {
			test.client(o)
		}
	})
	if test.want == observe.ErrorClass(decide.ClassLoading) { // it looks at new connections now and then
		eventually(t, "the server loads", func() bool { return redis.HasErrorPrefix(client.Get(context.Background(), "k").Err(), "LOADING") })
	}
	if test.want == observe.ErrorClass(decide.ClassPool) {
		conn := client.Conn()
		defer conn.Close()
		conn.Ping(context.Background())
	}
	wantClass(t, client, test.want, test.orBroken, append(test.options, runtime.WithTimeout(timeout))...)
}

func wantClass(t *testing.T, client redis.UniversalClient, want observe.ErrorClass, orBroken bool, options ...runtime.RedisOption) {
	t.Helper()
	store := runtime.NewRedisStore(client, options...)
	var seen []observe.ErrorClass
	limiter := runtime.New(store, quiet, closed, observing(observe.Observer{
		Failure: func(_ context.Context, e observe.FailureEvent) { seen = append(seen, e.Class) },
	}))
	r := runtime.Rule{Name: "closed", Prefix: "class:", Window: time.Hour, Max: 100}
	open := r
	open.Name, open.Fail = "open", runtime.FailOpen
	takenBy(t, limiter, rule.SourceFailure, open.Limit(nil))
	_, err := limiter.Take(t.Context(), r.Limit(nil))
	second := runtime.ClassOf(err)
	if !errors.Is(err, runtime.ErrUnavailable) || second != want && !(orBroken && second == observe.ClassConnection) {
		t.Errorf("closed: got %v, %v; want %v", second, err, want)
	}
	same(t, "the observer's failures", []observe.ErrorClass{want, second}, seen)
	counted := map[observe.ErrorClass]int64{want: 1}
	counted[second]++
	same(t, "failures counted", counted, bridge.StoreOf(store).Failures())
}

// TestErrorClassOfConnection breaks connections while calls are under way.
func TestErrorClassOfConnection(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := faultproxy.Start(t, server.Addr)
	client := server.Client(t, func(o *redis.Options) { o.Addr = proxy.Addr })
	ok(t, client.Ping(context.Background()).Err())
	proxy.CutReplies()
	wantClass(t, client, observe.ClassConnection, false, patient)
	_ = client.Close()
	wantClass(t, client, observe.ErrorClass(decide.ClassClosed), false, patient)
}

// TestErrorClassesOfCluster takes a slot from a cluster, and leaves another half moved.
func TestErrorClassesOfCluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	client := cluster.Client(t)
	testNothingPrivateOfCluster(t, cluster)
	// It asks again and again, ever more seldom, and has four seconds for the last.
	store := runtime.NewRedisStore(client, runtime.WithTimeout(8*time.Second))
	limiter := runtime.New(store, quiet, closed)
	rule := &runtime.Rule{Name: "r", Prefix: "{moving}:", Window: time.Hour, Max: 100}
	other := &runtime.Rule{Name: "o", Prefix: "{moving}:", Window: time.Hour, Max: 100, Algorithm: runtime.TokenBucket}
	taken(t, limiter, rule.Limit(nil))
	slot, to := cluster.Slot("{moving}"), cluster.Nodes[0]
	if to == cluster.Master(slot) {
		to = cluster.Nodes[1]
	}
	cluster.StartMove(slot, to)
	taken(t, limiter, rule.Limit(nil), other.Limit(nil)) // half moved

	rule = &runtime.Rule{Name: "r", Prefix: "{gone}:", Window: time.Hour, Max: 100}
	slot = cluster.Slot("{gone}")
	for _, node := range cluster.Nodes {
		_ = node.Client(t).ClusterDelSlots(t.Context(), slot).Err()
	}
	_, err := limiter.Take(t.Context(), rule.Limit(nil))
	equal(t, fmt.Sprintf("no node has the slot: %v: class", err), runtime.ClassOf(err), observe.ErrorClass(decide.ClassClusterDown))
}

// TestForeignType has somebody else's values under a limit's key: the call fails by its policy,
// others beside it do not, and a reset heals the key.
func TestForeignType(t *testing.T) {
	client := ownRedis(t)
	limiterOf := func(policy runtime.FailurePolicy) *runtime.Limiter {
		return runtime.New(runtime.NewRedisStore(client, patient), quiet, runtime.WithFailurePolicy(policy))
	}
	closed, open, local := limiterOf(runtime.FailClosed), limiterOf(runtime.FailOpen), limiterOf(runtime.FailLocal)
	for name, r := range serverRules(time.Hour, 2) {
		t.Run(name, func(t *testing.T) {
			limit := r.Limit(key(strings.Repeat("long", 100))) // a part of its key is a hash
			good := (&runtime.Rule{Name: "good", Prefix: "good:", Window: time.Hour, Max: 100}).Limit(key(name))
			redisKey := bridge.LimiterOf(closed).RedisKey(limit)
			fails := func(what string, limits ...runtime.Limit) {
				t.Helper()
				if _, err := closed.Take(t.Context(), limits...); !errors.Is(err, runtime.ErrUnavailable) || !strings.Contains(causes(err), "WRONGTYPE") {
					t.Errorf("%s: got %v, want ErrUnavailable and WRONGTYPE", what, err)
				}
			}
			client.Set(t.Context(), redisKey, "somebody else's", 0)
			fails("a string", limit)
			client.Del(t.Context(), redisKey)
			client.SAdd(t.Context(), redisKey, "somebody else's")
			fails("a set", good, limit)
			equal(t, "open: source", taken(t, open, limit).Source, rule.SourceFailure)
			for range 2 {
				equal(t, "local: source", taken(t, local, limit).Source, rule.SourceLocal)
			}
			d, _ := refused(t, local, limit)
			equal(t, "local: source of a refusal", d.Source, rule.SourceLocal)
			wantLeft(t, local, good, 100)
			outcomes := closed.TakeEach(t.Context(), good, limit, good)
			if outcomes[0].Err != nil || !errors.Is(outcomes[1].Err, runtime.ErrUnavailable) || outcomes[2].Err != nil || outcomes[2].Remaining != 98 {
				t.Errorf("in a batch: got %+v", outcomes)
			}
			ok(t, closed.Reset(t.Context(), limit))
			taken(t, closed, limit)
		})
	}
}
