package runtime_test

import (
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/document"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/documents"
)

// onCluster is what is tried on a cluster, beside others.
var onCluster = map[string]func(*testing.T, *redistest.Cluster){
	"late shadows": testShadowLate, "many slots": testManySlots, "documents": testDocuments,
}

// alone is what limiters promise on a Redis and on a cluster, and is tried while nobody else uses the servers.
var alone = map[string]func(*testing.T, redis.UniversalClient, []*redistest.Server){
	"warm": testWarm, "short scripts": testShortScripts, "memory watch": testMemoryWatch, "processes": testProcesses,
	"own returns forgotten": testOwnReturnsForgotten,
}

// aloneOnCluster is what else is tried while nobody else uses the cluster.
var aloneOnCluster = map[string]func(*testing.T, *redistest.Cluster){
	"reserved share": testReservedShare, "survey": testSurveyEach, "block in parts": testBlockInParts, "share kept": testShareKept,
	"calls that leave": testCallsThatLeave,
	"one trip":         testOneTripOnCluster, "concurrent": testClusterConcurrent, "refund once": testClusterRefundOnce,
}

// testDocuments plays the documents of limiters that say so on a cluster.
func testDocuments(t *testing.T, cluster *redistest.Cluster) {
	store := runtime.NewRedisStore(cluster.Client(t), patient)
	own := documents.Own{Outside: true, Open: func(opts ...runtime.Option) *runtime.Limiter { return runtime.New(store, opts...) }}
	for _, s := range document.Read(t, documents.Documents(t, "limiter/*.txt")) {
		if _, is := s.Arg("cluster"); is {
			own.Play(t, s, nil, "cluster")
		}
	}
}

// TestEverywhere tries it on a Redis and on a cluster.
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
}
