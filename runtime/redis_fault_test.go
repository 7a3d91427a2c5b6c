package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/faultproxy"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rawstore"
)

// TestAtMostOnce lets the client time out and retry as it does by default: a
// call is charged once all the same, or not at all.
func TestAtMostOnce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.Start(t)
	direct := server.Client(t)
	const calls = 20
	client := server.Client(t, func(o *redis.Options) {
		o.ReadTimeout = 20 * time.Millisecond // and MaxRetries is 3
		o.PoolSize = calls
	})
	newLimiter := func() *runtime.Limiter { // each has its own trips
		return onRedis(client)
	}
	limiter := onRedis(direct)
	limit := (&runtime.Rule{Name: "r", Window: time.Hour, Max: 1000}).Limit(key("k"))
	taken(t, limiter, limit)
	before := executions(t, direct)
	warm(t, client, calls)

	server.Pause()
	var wait sync.WaitGroup
	for range calls {
		wait.Go(func() {
			if _, err := newLimiter().Take(ctx, limit); !errors.Is(err, runtime.ErrUnavailable) {
				t.Errorf("a paused server: %v", err)
			}
		})
	}
	wait.Wait()
	server.Resume()
	// What was sent is executed now.
	eventually(t, "a call is executed", func() bool { return executions(t, direct) > before })
	for until := time.Now().Add(slack); executions(t, direct) < before+calls && time.Now().Before(until); {
		time.Sleep(time.Millisecond)
	}
	executed := executions(t, direct) - before
	if executed < 1 || executed > calls {
		t.Errorf("%d calls were executed %d times", calls, executed)
	}
	d, err := limiter.Peek(ctx, limit)
	if charged := 999 - d.Remaining; err != nil || charged > calls {
		t.Errorf("%d calls were charged %d times (%v)", calls, charged, err)
	}
	t.Logf("%d calls, %d executions, %d charged", calls, executed, 999-d.Remaining)
}

// A way is a server behind a proxy, and clients that find it there.
type way struct {
	server  *redistest.Server
	proxy   *faultproxy.Proxy
	connect func() redis.UniversalClient
}

// soon makes a client retry soon.
const soon = 500 * time.Millisecond

func wayToServer(t *testing.T) way {
	server := redistest.Start(t)
	proxy := faultproxy.Start(t, server.Addr)
	return way{server, proxy, func() redis.UniversalClient {
		return redis.NewClient(&redis.Options{Addr: proxy.Addr, ReadTimeout: soon})
	}}
}

// wayToMaster leads to the master of a key, and past no proxy to other nodes.
func wayToMaster(t *testing.T, cluster *redistest.Cluster, key string) way {
	master := cluster.Master(cluster.Slot(key))
	proxy := faultproxy.Start(t, master.Addr)
	return way{master, proxy, func() redis.UniversalClient {
		return cluster.Client(t, func(o *redis.ClusterOptions) {
			o.ReadTimeout = soon
			o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
				if addr == master.Addr {
					addr = proxy.Addr
				}
				return new(net.Dialer).DialContext(ctx, network, addr)
			}
		})
	}}
}

const lostControl = "{k}control" // where the limit's keys are

var lostReplies = map[string]func(*faultproxy.Proxy){
	"thrown away":       (*faultproxy.Proxy).DropReplies,
	"connection closed": (*faultproxy.Proxy).CutReplies,
}

func TestLostReplies(t *testing.T) {
	t.Parallel()
	for name, fault := range lostReplies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testLostReplies(t, wayToServer(t), lostControl, fault)
		})
	}
}

// testLostReplies loses every reply to clients that have their connections
// already: each call has been executed exactly once, and none is again,
// although its client retries as it does by default. A command of such a
// client is there to show that.
func testLostReplies(t *testing.T, way way, control string, fault func(*faultproxy.Proxy)) {
	ctx := context.Background()
	direct := way.server.Client(t)
	direct.Del(ctx, control, "{k}:") // of another test
	// There is a connection left for every retry: a pool has ten and more by
	// default, and new ones could not be made.
	const connections, calls = 10, 3
	connect := func() redis.UniversalClient {
		client := way.connect()
		t.Cleanup(func() { _ = client.Close() })
		node, ok := client.(*redis.Client)
		if cluster, isCluster := client.(*redis.ClusterClient); !ok && isCluster {
			var err error
			if node, err = cluster.MasterForKey(ctx, control); err != nil {
				t.Fatal(err)
			}
		}
		warm(t, node, connections)
		return client
	}
	client, stranger := connect(), connect()
	limit := (&runtime.Rule{Window: time.Hour, Max: 1000, Prefix: "{k}:"}).Limit(nil)
	take := func() error {
		// A store of its own for each call: they share no trips. There is time
		// for every retry.
		_, err := onRedis(client).Take(ctx, limit)
		return err
	}
	if err := take(); err != nil { // and loads the script
		t.Fatal(err)
	}
	before := executions(t, direct)

	fault(way.proxy)
	var wait sync.WaitGroup
	for range calls {
		wait.Go(func() {
			if err := take(); !errors.Is(err, runtime.ErrUnavailable) {
				t.Errorf("got %v, want %v", err, runtime.ErrUnavailable)
			}
		})
	}
	if err := stranger.Incr(ctx, control).Err(); err == nil {
		t.Error("a lost reply is no error")
	}
	wait.Wait()
	if n, err := direct.Get(ctx, control).Int(); n < 2 {
		t.Errorf("a command of the client was executed %d times (%v), so that this shows nothing", n, err)
	}
	if got := executions(t, direct) - before; got != calls {
		t.Errorf("%d calls were executed %d times", calls, got)
	}
	way.proxy.Pass()
	d, err := onRedis(direct).Peek(ctx, limit)
	if charged := 1000 - d.Remaining; err != nil || charged != 1+calls {
		t.Errorf("%d calls were charged %d times (%v)", 1+calls, charged, err)
	}
}

// warm makes a client dial so many connections, each ready to send on.
func warm(t *testing.T, client *redis.Client, connections int) {
	t.Helper()
	var conns []*redis.Conn
	for try := 0; len(conns) < connections; try++ {
		conn := client.Conn()
		switch err := conn.Ping(context.Background()).Err(); {
		case err == nil:
			conns = append(conns, conn)
		case try > 2*connections:
			t.Fatal(err)
		default: // a busy machine
			_ = conn.Close()
		}
	}
	for _, conn := range conns {
		_ = conn.Close()
	}
}

// executions returns how many scripts a server has executed.
func executions(t *testing.T, client *redis.Client) int {
	t.Helper()
	info, err := client.Info(context.Background(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, command := range []string{"evalsha", "eval"} {
		stat := regexp.MustCompile(fmt.Sprintf(`cmdstat_%s:calls=(\d+),.*rejected_calls=(\d+),failed_calls=(\d+)`, command))
		if match := stat.FindStringSubmatch(info); match != nil {
			called, _ := strconv.Atoi(match[1])
			failed, _ := strconv.Atoi(match[3])
			total += called - failed
		}
	}
	return total
}

// TestGiveUp has callers wait for a Redis that does not answer, together, and
// each give up in its own way at its own time. They get the error of their
// context long before the store's timeout is over, and those who do not give up
// are decided when Redis is back.
func TestGiveUp(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	store := runtime.NewRedisStore(server.Client(t), patient)
	rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 1000}
	take := func(ctx context.Context) error {
		calls := single(rule, "give up", 1)
		return errors.Join(rawstore.On(store).Take(ctx, calls), calls[0].Err)
	}
	ok(t, take(context.Background()))
	server.Pause()
	defer server.Resume()
	var leave, stay sync.WaitGroup
	for i := range 40 {
		after := time.Duration(i) * time.Millisecond / 2 // before the first look at the context, and after
		leave.Go(func() {
			ctx, cancel := context.WithCancel(context.Background())
			defer time.AfterFunc(after, cancel).Stop()
			defer cancel()
			if err := take(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled after %v: got %v", after, err)
			}
		})
		leave.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), after)
			defer cancel()
			if err := take(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("ends after %v: got %v", after, err)
			}
		})
		stay.Go(func() {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			if err := take(ctx); err != nil {
				t.Errorf("who stays: got %v", err)
			}
		})
	}
	begin := time.Now()
	leave.Wait()
	t.Logf("all are gone after %v", time.Since(begin))
	server.Resume()
	stay.Wait()
}

// TestDistance wants a Redis to decide that is so far away that there is time
// for a call, but not for a call and the making of a connection before it. It is
// to come to have connections all the same, also with a client that gives one up
// when the call's time is over.
func TestDistance(t *testing.T) {
	t.Parallel()
	for name, tune := range map[string]func(*redis.Options){
		"default options": func(*redis.Options) {},
		"contexts":        func(o *redis.Options) { o.ContextTimeoutEnabled = true },
		"tuned":           func(o *redis.Options) { runtime.TuneRedis(o) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := faultproxy.Start(t, redistest.Start(t).Addr)
			proxy.Delay(20 * time.Millisecond)
			options := &redis.Options{Addr: proxy.Addr}
			tune(options)
			client := redis.NewClient(options)
			t.Cleanup(func() { _ = client.Close() })
			limiter := runtime.New(runtime.NewRedisStore(client), quiet, closed)
			limit := (&runtime.Rule{Name: "r", Window: time.Hour, Max: 10_000}).Limit(nil)
			for begin := time.Now(); ; time.Sleep(5 * time.Millisecond) {
				_, err := limiter.Take(context.Background(), limit)
				if err == nil {
					t.Logf("decided after %v", time.Since(begin))
					return
				}
				if time.Since(begin) > comeback {
					t.Fatalf("not decided within %v: %v", comeback, err)
				}
			}
		})
	}
}

// TestForbiddenKey has callers share trips of whom a few name keys that Redis
// forbids the client's user: they alone fail, and all others are charged once.
func TestForbiddenKey(t *testing.T) {
	t.Parallel()
	const callers, keys, most = 60, 20, 2
	ctx := context.Background()
	server := redistest.Start(t)
	ok(t, server.Client(t).Do(ctx, "ACL", "SETUSER", "limiter", "on", "nopass", "~free:*", "+@all").Err())
	client := redis.NewClient(&redis.Options{Addr: server.Addr, Username: "limiter", Password: "any"})
	t.Cleanup(func() { _ = client.Close() })
	store := runtime.NewRedisStore(client, patient, atOnce)
	rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: most}
	take := func(key string) (terms.Result, error) {
		calls := []rawstore.Call{{Charges: []rawstore.Charge{{Rule: rule, Key: []byte(key), Max: most, Cost: 1}}}}
		err := errors.Join(rawstore.On(store).Take(ctx, calls), calls[0].Err)
		return calls[0].Charges[0].Result, err
	}
	if _, err := take("free:"); err != nil {
		t.Fatal(err)
	}
	server.Pause()
	var admitted [keys]atomic.Int64
	var wait sync.WaitGroup
	for range 2 { // as many trips as are under way at a time, so that all others wait
		wait.Go(func() { _, _ = take("free:") })
		time.Sleep(10 * time.Millisecond)
	}
	for i := range callers {
		wait.Go(func() {
			result, err := take(fmt.Sprint("free:", i%keys))
			if err != nil {
				t.Errorf("call on key %d: %v", i%keys, err)
			}
			if result.Allowed {
				admitted[i%keys].Add(1)
			}
		})
		if i%10 == 0 {
			wait.Go(func() {
				if _, err := take(fmt.Sprint("forbidden:", i)); runtime.ClassOf(err) != runtime.ClassAuth {
					t.Errorf("call on a forbidden key: %v", err)
				}
			})
		}
	}
	for until := time.Now().Add(2 * time.Second); store.Waiting() < callers && time.Now().Before(until); {
		time.Sleep(time.Millisecond)
	}
	server.Resume()
	wait.Wait()
	for i := range admitted {
		if n := admitted[i].Load(); n != most {
			t.Errorf("key %d: %d admitted, want %d", i, n, most)
		}
	}
}
