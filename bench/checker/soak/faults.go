package main

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/faultproxy"
	"github.com/rategen/rategen/internal/testkit/redistest"
)

// servers are what all processes call: a standalone server behind a proxy, and a
// cluster.
type servers struct {
	*redistest.Server
	proxy   *faultproxy.Proxy
	cluster *redistest.Cluster
	turn    int // of the nodes that something happens to
}

// A fault is something that happens to one of the servers, from begin to end.
type fault struct {
	name       string
	site       int // which it happens to
	forgets    bool
	begin, end func(*servers)
}

var faults = []fault{
	{name: "silence", begin: func(s *servers) { s.proxy.Stall() }, end: pass},
	{name: "node killed", site: 1, forgets: true, begin: func(s *servers) { s.node().Kill() }, end: func(s *servers) { s.node().Restart() }},
	{name: "replies lost", begin: func(s *servers) { s.proxy.DropReplies() }, end: pass},
	{name: "server killed", forgets: true, begin: func(s *servers) { s.Kill() }, end: func(s *servers) { s.Restart() }},
	{name: "node stopped", site: 1, forgets: true, begin: func(s *servers) { s.node().Pause() }, end: func(s *servers) { s.node().Resume() }},
	{name: "replies cut", begin: func(s *servers) { s.proxy.CutReplies() }, end: pass},
	{name: "server stopped", begin: func(s *servers) { s.Pause() }, end: func(s *servers) { s.Resume() }},
	{name: "failover", site: 1, forgets: true, begin: failover, end: func(*servers) {}},
	{name: "refused", begin: func(s *servers) { s.proxy.Refuse() }, end: pass},
	{name: "replies late", begin: func(s *servers) { s.proxy.Delay(timeout * 6 / 5) }, end: pass},
	{name: "scripts gone", begin: func(s *servers) { s.do("SCRIPT", "FLUSH") }, end: func(*servers) {}},
	{name: "reset", begin: func(s *servers) { s.proxy.Reset() }, end: pass},
}

func pass(s *servers) { s.proxy.Pass() }

// node returns the node whose turn it is.
func (s *servers) node() *redistest.Server { return s.cluster.Nodes[s.turn%len(s.cluster.Nodes)] }

// failover has every node that is a replica take over, if its master agrees.
func failover(s *servers) {
	ask(s.node().Addr, func(ctx context.Context, client *redis.Client) error {
		return client.ClusterFailover(ctx).Err() // a master says that it is one
	})
}

func (s *servers) do(command ...any) {
	ask(s.Addr, func(ctx context.Context, client *redis.Client) error { return client.Do(ctx, command...).Err() })
}

// ask asks a server with a client of its own, and returns whether it answered.
func ask(addr string, f func(context.Context, *redis.Client) error) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	client := redis.NewClient(&redis.Options{Addr: addr, PoolSize: 1, MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true})
	defer client.Close()
	return f(ctx, client) == nil
}

// held returns how much memory the servers have in use, in bytes, and how many keys
// there are in the masters' hands.
func (s *servers) held() (bytes, keys int64) {
	for _, server := range append([]*redistest.Server{s.Server}, s.cluster.Nodes...) {
		ask(server.Addr, func(ctx context.Context, client *redis.Client) error {
			info, err := client.InfoMap(ctx, "memory", "replication").Result()
			if err != nil {
				return err
			}
			bytes += number(info["Memory"]["used_memory"])
			if info["Replication"]["role"] == "master" {
				n, err := client.DBSize(ctx).Result()
				keys += n
				return err
			}
			return nil
		})
	}
	return bytes, keys
}

// epoch returns a number that grows with every change of the cluster's masters, and
// whether a node told it.
func (s *servers) epoch() (epoch int64, known bool) {
	for _, node := range s.cluster.Nodes {
		ask(node.Addr, func(ctx context.Context, client *redis.Client) error {
			info, err := client.ClusterInfo(ctx).Result()
			if err == nil {
				epoch, known = max(epoch, number(field(info, "cluster_current_epoch:"))), true
			}
			return err
		})
	}
	return epoch, known
}
