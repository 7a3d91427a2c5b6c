package faults

import (
	"context"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

var clusters = []Fault{
	onCluster("SIGKILL of a master", []string{"dial", "timeout"}, true, true, func(_ testing.TB, _ *redistest.Cluster, master *redistest.Server) site {
		return site{begin: master.Kill}
	}),
	onCluster("SIGSTOP of a master", []string{"timeout"}, true, false, func(_ testing.TB, _ *redistest.Cluster, master *redistest.Server) site {
		return site{begin: master.Pause}
	}),
	onCluster("CLUSTER FAILOVER", nil, true, false, func(tb testing.TB, c *redistest.Cluster, master *redistest.Server) site {
		var replica *redistest.Server
		for i := range 3 {
			if c.Nodes[i] == master {
				replica = c.Nodes[i+3]
			}
		}
		admin := replica.Client(tb)
		return site{begin: func() {
			if err := admin.ClusterFailover(context.Background()).Err(); err != nil {
				tb.Errorf("CLUSTER FAILOVER: %v", err)
			}
		}}
	}),
	onCluster("SIGSTOP of all nodes", []string{"timeout"}, false, false, func(_ testing.TB, c *redistest.Cluster, _ *redistest.Server) site {
		return site{
			begin: func() {
				for _, node := range c.Nodes {
					node.Pause()
				}
			},
			end: func() {
				for _, node := range c.Nodes {
					node.Resume()
				}
			},
		}
	}),
}

// onCluster returns a fault of a cluster, or of the master of the first of
// three tags, which have a master each. They may cost a failover.
func onCluster(name string, classes []string, heals, quick bool, set func(testing.TB, *redistest.Cluster, *redistest.Server) site) Fault {
	return Fault{Name: name, Where: Cluster, Failovers: 1, Heals: heals, Classes: classes, Quick: quick, set: func(tb testing.TB, c clients) *site {
		cluster := redistest.StartCluster(tb)
		tags := make([]string, 3)
		for found, i := 0, 0; found < 3; i++ {
			tag := strconv.Itoa(i)
			master := cluster.Master(cluster.Slot(tag))
			for m, node := range cluster.Nodes[:3] {
				if node == master && tags[m] == "" {
					tags[m] = tag
					found++
				}
			}
		}
		s := set(tb, cluster, cluster.Nodes[0])
		s.tags, s.epoch = tags, cluster.Epoch
		s.connect = c.store(tb, func() redis.UniversalClient {
			return cluster.Client(tb, func(o *redis.ClusterOptions) {
				if c.tuned {
					runtime.TuneRedis(o)
				}
			})
		}, &redis.UniversalOptions{Addrs: cluster.Addrs()})
		return &s
	}}
}

var sentinels = []Fault{
	onSentinel("SIGKILL of the master", []string{"dial", "timeout"}, (*redistest.Server).Kill),
	onSentinel("SIGSTOP of the master", []string{"timeout"}, (*redistest.Server).Pause),
}

func onSentinel(name string, classes []string, fault func(*redistest.Server)) Fault {
	return Fault{Name: name, Where: Sentinel, Failovers: 1, Heals: true, Classes: classes, set: func(tb testing.TB, c clients) *site {
		sentinel := redistest.StartSentinel(tb)
		client := func() redis.UniversalClient {
			return sentinel.Client(tb, func(o *redis.FailoverOptions) {
				if c.tuned {
					runtime.TuneRedis(o)
				}
			})
		}
		options := &redis.UniversalOptions{Addrs: sentinel.Addrs(), MasterName: sentinel.MasterName}
		return &site{connect: c.store(tb, client, options), begin: func() { fault(sentinel.Nodes[0]) }, epoch: sentinel.Epoch}
	}}
}
