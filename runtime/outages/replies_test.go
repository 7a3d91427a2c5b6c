package outages

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/faultproxy"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// A way is a server behind a proxy, and clients that find it there.
type way struct {
	server  *redistest.Server
	proxy   *faultproxy.Proxy
	connect func() redis.UniversalClient
}

// soon makes a client retry soon.
const soon = 1500 * time.Millisecond

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
	direct := way.server.Client(t)
	direct.Del(t.Context(), control, "{k}:") // of another test
	// There is a connection left for every retry: a pool has ten and more by
	// default, and new ones could not be made.
	const connections, calls = 10, 3
	connect := func() redis.UniversalClient {
		client := way.connect()
		t.Cleanup(func() { _ = client.Close() })
		node, ok := client.(*redis.Client)
		if cluster, isCluster := client.(*redis.ClusterClient); !ok && isCluster {
			var err error
			if node, err = cluster.MasterForKey(t.Context(), control); err != nil {
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
		_, err := onRedis(client).Take(t.Context(), limit)
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
	if err := stranger.Incr(t.Context(), control).Err(); err == nil {
		t.Error("a lost reply is no error")
	}
	wait.Wait()
	if n, err := direct.Get(t.Context(), control).Int(); n < 2 {
		t.Errorf("a command of the client was executed %d times (%v), so that this shows nothing", n, err)
	}
	limittest.Equal(t, "executions", executions(t, direct)-before, calls)
	way.proxy.Pass()
	d, err := onRedis(direct).Peek(t.Context(), limit)
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
		err := conn.Ping(context.Background()).Err()
		if err == nil {
			conns = append(conns, conn)
		} else if try > 2*connections {
			t.Fatal(err)
		} else { // a busy machine
			_ = conn.Close()
		}
	}
	for _, conn := range conns {
		_ = conn.Close()
	}
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
			eventually(t, "it decides", func() bool { _, err := limiter.Take(t.Context(), limit); return err == nil })
		})
	}
}
