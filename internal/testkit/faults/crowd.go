package faults

import (
	"context"
	"fmt"
	goruntime "runtime"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// A Crowd is how long many calls took that came at once to a Redis that gives
// no answer, the first of which have to find that out.
type Crowd struct {
	Name          string
	Calls         int
	P50, P99, Max time.Duration
}

// Crowds has crowds come to a standalone server and, unless it is to be short,
// to a cluster. Each has connections before or none, and uses two processors.
func Crowds(tb testing.TB, short bool) []Crowd {
	tb.Helper()
	defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(2))
	server := redistest.Start(tb)
	crowds := []Crowd{
		crowd(tb, "SIGSTOP, connections there", server.Client(tb), true, server),
		crowd(tb, "SIGSTOP, no connections", server.Client(tb), false, server),
	}
	if !short {
		cluster := redistest.StartCluster(tb)
		crowds = append(crowds,
			crowd(tb, "SIGSTOP of all nodes of a cluster, connections there", cluster.Client(tb), true, cluster.Nodes...),
			crowd(tb, "SIGSTOP of all nodes of a cluster, no connections", cluster.Client(tb), false, cluster.Nodes...))
	}
	return crowds
}

func crowd(tb testing.TB, name string, client redis.UniversalClient, warm bool, servers ...*redistest.Server) Crowd {
	tb.Helper()
	limiter := runtime.New(runtime.NewRedisStore(client), runtime.WithLogger(silent))
	for i := 0; warm && i < 1000; i++ {
		if d, err := limiter.Take(context.Background(), inCrowd(i)); i > 100 && d.Source != rule.SourceStore {
			tb.Fatalf("%s: before: decided by %v, %v", name, d.Source, err)
		}
	}
	for _, server := range servers {
		server.Pause()
	}
	c := Together(tb, limiter, 10_000)
	for _, server := range servers {
		server.Resume()
	}
	c.Name = name
	return c
}

// inCrowd is the limit of a call.
func inCrowd(i int) runtime.Limit { return crowdRule.Limit(runtime.NewKey().AddInt(int64(i % 1000))) }

var crowdRule = &runtime.Rule{Name: "crowd", Prefix: "crowd:", Window: time.Hour, Max: 1_000_000}

// Together has so many calls come at once to a limiter whose Redis gives no answer. Each must be
// let through by the failure policy.
func Together(tb testing.TB, limiter *runtime.Limiter, calls int) Crowd {
	tb.Helper()
	took := make([]time.Duration, calls)
	failed := make([]error, calls)
	var ready, wait sync.WaitGroup
	release := make(chan struct{})
	ready.Add(calls)
	for i := range calls {
		wait.Go(func() {
			limit := inCrowd(i)
			ready.Done()
			<-release
			begin := time.Now()
			d, err := limiter.Take(context.Background(), limit)
			took[i] = time.Since(begin)
			if err != nil || d.Source != rule.SourceFailure {
				failed[i] = fmt.Errorf("decided by %v, %v", d.Source, err)
			}
		})
	}
	ready.Wait()
	close(release)
	wait.Wait()
	for i, err := range failed {
		if err != nil {
			tb.Fatalf("call %d: %v", i, err)
		}
	}
	c := Crowd{Calls: calls}
	c.P50, c.P99, c.Max = quantiles(took)
	return c
}
