package runtime_test

import (
	"maps"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// replicas returns a limiter of one more replica. All of a test count together, in a
// namespace of the test's on a server, and each has a store of its own there.
type replicas func(opts ...runtime.Option) *runtime.Limiter

// sharing returns replicas on one store.
func sharing(store runtime.Store) replicas {
	return func(opts ...runtime.Option) *runtime.Limiter {
		return runtime.New(store, append([]runtime.Option{quiet}, opts...)...)
	}
}

// everywhere is what limiters promise on every kind of store.
var everywhere = map[string]func(*testing.T, replicas){
	"rules without prefix": testRulesWithoutPrefix, "late refunds": testRefundAfterTheCaller,
}

// onServers is what they promise where processes share a Redis.
var onServers = map[string]func(*testing.T, replicas){"thresholds of leases": testThresholdsLeased}

// onCluster is what else is tried on a cluster, beside others.
var onCluster = map[string]func(*testing.T, *redistest.Cluster){"late shadows": testShadowLate, "many slots": testManySlots}

// alone is what limiters promise where processes share a Redis, too, and what is tried while
// nobody else uses the servers.
var alone = map[string]func(*testing.T, redis.UniversalClient, []*redistest.Server){
	"warm": testWarm, "short scripts": testShortScripts, "memory watch": testMemoryWatch, "processes": testProcesses, "refused minutes": testRefusedMinutes,
	"own returns forgotten": testOwnReturnsForgotten,
}

// aloneOnCluster is what else is tried while nobody else uses the cluster.
var aloneOnCluster = map[string]func(*testing.T, *redistest.Cluster){
	"reserved share": testReservedShare, "survey": testSurveyEach, "block in parts": testBlockInParts, "share kept": testShareKept,
	"calls that leave": testCallsThatLeave,
	"one trip":         testOneTripOnCluster, "concurrent": testClusterConcurrent, "refund once": testClusterRefundOnce,
}

// TestEverywhere tries it on a store in memory, on a Redis, on a cluster, and on a store that
// gives no answer to a caller whose context has ended.
func TestEverywhere(t *testing.T) {
	t.Parallel()
	server, cluster := redistest.Start(t), redistest.StartCluster(t)
	cluster.KeepMasters()   // one does not answer for a while
	var both sync.WaitGroup // not parallel tests, which would wait behind all others
	both.Go(func() {
		t.Run("redis alone", func(t *testing.T) {
			for name, test := range alone {
				t.Run(name, func(t *testing.T) { test(t, server.Client(t), []*redistest.Server{server}) })
			}
		})
	})
	both.Go(func() {
		t.Run("cluster alone", func(t *testing.T) {
			for name, test := range alone {
				t.Run(name, func(t *testing.T) { test(t, cluster.Client(t), cluster.Nodes) })
			}
			for name, test := range aloneOnCluster {
				t.Run(name, func(t *testing.T) { test(t, cluster) })
			}
		})
	})
	both.Wait()
	cluster.WaitReady()
	for name, test := range onCluster {
		t.Run("cluster/"+name, func(t *testing.T) {
			t.Parallel()
			test(t, cluster)
		})
	}
	redisStore := func(client redis.UniversalClient) func() runtime.Store {
		return func() runtime.Store { return runtime.NewRedisStore(client, patient) }
	}
	same := func(store runtime.Store) func() runtime.Store { return func() runtime.Store { return store } }
	for kind, open := range map[string]func(*testing.T) func() runtime.Store{
		"memory":  func(*testing.T) func() runtime.Store { return same(runtime.NewMemoryStore()) },
		"wrapped": func(*testing.T) func() runtime.Store { return same(newFake().whileCalled()) },
		"redis":   func(t *testing.T) func() runtime.Store { return redisStore(server.Client(t)) },
		"cluster": func(t *testing.T) func() runtime.Store { return redisStore(cluster.Client(t)) },
	} {
		tests := maps.Clone(everywhere)
		if kind == "redis" || kind == "cluster" {
			maps.Copy(tests, onServers)
		}
		for name, test := range tests {
			t.Run(kind+"/"+name, func(t *testing.T) {
				t.Parallel()
				store := open(t)
				test(t, func(opts ...runtime.Option) *runtime.Limiter {
					limiter := runtime.New(store(), append([]runtime.Option{quiet, closed, runtime.WithNamespace(t.Name())}, opts...)...)
					t.Cleanup(func() { _ = limiter.Close() })
					return limiter
				})
			})
		}
	}
}
