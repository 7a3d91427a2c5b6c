package crossing

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/faultproxy"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/internal/testkit/steppedclock"
	"github.com/rategen/rategen/runtime"
)

// A node is a real server, and the way to it, on which things go wrong.
type node struct {
	*redistest.Server
	proxy *faultproxy.Proxy
	admin *redis.Client
}

func newNode(t *testing.T, server *redistest.Server) *node {
	n := &node{Server: server, proxy: faultproxy.Start(t, server.Addr), admin: server.Client(t)}
	return n
}

// forbid has the server refuse keys of rules that are in shadow mode to everybody, or no
// longer.
func (n *node) forbid(yes bool) {
	rules := []any{"ACL", "SETUSER", "default", "resetkeys", "allkeys"}
	if yes {
		rules = append(rules[:4], "~*rate_limit:*", "~*shared:*")
	}
	_ = n.admin.Do(context.Background(), rules...).Err()
}

// begin begins a fault of the server.
func (n *node) begin(f fault) (end func()) {
	switch f {
	case slow:
		n.proxy.Delay(3 * time.Millisecond)
	case frozen:
		n.Pause()
		return n.Resume
	case down:
		n.proxy.Refuse()
	case lost:
		n.proxy.DropReplies()
	case flushed:
		_ = n.admin.FlushAll(context.Background()).Err()
		return func() {}
	case forbidden:
		n.forbid(true)
		return func() { n.forbid(false) }
	case unscripted:
		_ = n.admin.ScriptFlush(context.Background()).Err()
		return func() {}
	case killed:
		n.Kill()
		return n.Restart
	default:
		panic("no fault of a server: " + faultSteps[f])
	}
	return n.proxy.Pass
}

// redisWorld is a world of real servers: one, or those of a cluster.
type redisWorld struct {
	nodes   []*node
	connect func() redis.UniversalClient
	cluster *redistest.Cluster // or nil
	space   string             // the namespace of a program
	hasty   bool
	clock   *steppedclock.Clock   // of the servers; nil: nobody sets it
	forward *atomic.Int64         // the steps of it that go forward
	one     bool                  // client for all stores
	client  redis.UniversalClient // of the newest store
	began   time.Time
	closing []func() error
}

// A redisFleet gives each program a world of its own on the same servers.
type redisFleet struct {
	redisWorld
	programs atomic.Int64
}

func (f *redisFleet) world() *redisWorld {
	w := f.redisWorld
	if w.clock != nil {
		w.clock.Set(0)
	}
	w.forward, w.began, w.space = new(atomic.Int64), time.Now(), fmt.Sprint("p", f.programs.Add(1))
	return &w
}

// oneRedis returns a world of one server.
func oneRedis(t *testing.T) *redisFleet {
	n := newNode(t, redistest.Start(t))
	return &redisFleet{redisWorld: redisWorld{nodes: []*node{n}, connect: func() redis.UniversalClient {
		return redis.NewClient(runtime.TuneRedis(&redis.Options{Addr: n.proxy.Addr}))
	}}}
}

// oneCluster returns a world of a cluster, whose masters are each behind a proxy.
func oneCluster(t *testing.T) *redisFleet {
	cluster := redistest.StartCluster(t)
	w := redisWorld{cluster: cluster}
	ways := map[string]string{}
	for _, server := range cluster.Nodes[:3] {
		n := newNode(t, server)
		w.nodes = append(w.nodes, n)
		ways[server.Addr] = n.proxy.Addr
	}
	w.connect = func() redis.UniversalClient {
		return redis.NewClusterClient(runtime.TuneRedis(&redis.ClusterOptions{
			Addrs: cluster.Addrs(),
			Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
				if way := ways[addr]; way != "" {
					addr = way
				}
				return new(net.Dialer).DialContext(ctx, network, addr)
			},
		}))
	}
	return &redisFleet{redisWorld: w}
}

func (w *redisWorld) now() time.Duration {
	return time.Since(w.began) + time.Duration(w.forward.Load())
}
func (w *redisWorld) moment() time.Duration            { return w.now() }
func (w *redisWorld) exact() bool                      { return false }
func (w *redisWorld) still() bool                      { return false }
func (w *redisWorld) parts() bool                      { return w.cluster != nil }
func (w *redisWorld) back(time.Duration) time.Duration { return 0 }
func (w *redisWorld) rest()                            { time.Sleep(time.Millisecond) } // so that most are in order

// jump has the oracle's clock go forward first: what is decided meanwhile is not later than it is told.
func (w *redisWorld) jump(by time.Duration) {
	w.forward.Add(int64(max(0, by)))
	w.clock.Step(by)
}

// options are those of a limiter. Programs do not see each other's keys.
func (w *redisWorld) options() []runtime.Option {
	return []runtime.Option{runtime.WithNamespace(w.space)}
}

// patience is the time that a call has for Redis: no busy machine is taken for a fault.
const patience = time.Second

// haste is the time of calls in programs that do not ask whether Redis has decided.
const haste = 60 * time.Millisecond

// trust is for how long a refusal is remembered without asking again: windows are short.
const trust = 30 * time.Millisecond

// store returns a store on a client of its own, with connections.
func (w *redisWorld) store(int) runtime.Store {
	client := w.client
	if !w.one || client == nil {
		client = w.connect()
		w.client, w.closing = client, append(w.closing, client.Close)
	}
	_ = client.Ping(context.Background()).Err()
	if cluster, ok := client.(*redis.ClusterClient); ok {
		_ = cluster.ForEachMaster(context.Background(), func(ctx context.Context, c *redis.Client) error { return c.Ping(ctx).Err() })
	}
	timeout := patience
	if w.hasty {
		timeout = haste
	}
	store := runtime.NewRedisStore(client, runtime.WithTimeout(timeout), runtime.WithRefusalMemory(trust))
	w.closing = append(w.closing, store.Close)
	return store
}

// close ends what the stores of a program have begun.
func (w *redisWorld) close() {
	for i := len(w.closing) - 1; i >= 0; i-- {
		_ = w.closing[i]()
	}
}

// begin begins a fault of one server, or of what only a cluster has.
func (w *redisWorld) begin(f fault) (end func()) {
	n := w.node()
	switch f {
	case forbidden, slow, flushed, unscripted:
		var ends []func()
		for _, n := range w.nodes {
			ends = append(ends, n.begin(f))
		}
		return func() {
			for _, end := range ends {
				end()
			}
		}
	case moved:
		from, to := w.cluster.Master(w.slot()), n.Server
		if from == nil || from == to || !slices.Contains(w.cluster.Masters(), to.Addr) {
			return func() {} // also where a replica has taken over
		}
		return w.cluster.StartMove(w.slot(), to)
	}
	return n.begin(f)
}

// slot returns that of the key which most programs use most.
func (w *redisWorld) slot() int { return w.cluster.Slot(w.space + ":rate_limit:rule0:0") }

// node returns the server on which something goes wrong: any, or as often the one of the
// key that most programs use most.
func (w *redisWorld) node() *node {
	at := w.now().Nanoseconds() / 1000
	if w.cluster != nil && at%2 == 0 {
		owner := w.cluster.Master(w.slot())
		if i := slices.IndexFunc(w.nodes, func(n *node) bool { return n.Server == owner }); i >= 0 {
			return w.nodes[i]
		}
	}
	return w.nodes[at/2%int64(len(w.nodes))]
}
