package faults

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/faultproxy"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// A Distance is what callers saw of a Redis that answers each request late, but
// within the budget.
type Distance struct {
	Delay   time.Duration
	Callers int

	Calls, Undecided int
	P50, P99         time.Duration
}

// Distances has numbers of callers call a Redis at several delays, each call as
// soon as the one before was answered. The first second, in which connections are made, is
// left out.
func Distances(tb testing.TB, short bool) []Distance {
	tb.Helper()
	delays := []time.Duration{1, 5, 10, 20, 30, 35, 40}
	callers, lasts := []int{1, 4, 16, 64, 256}, 3*time.Second
	if short {
		delays, callers, lasts = []time.Duration{5, 35}, []int{16, 256}, time.Second
	}
	var all []Distance
	server := redistest.Start(tb)
	for _, delay := range delays {
		for _, n := range callers {
			all = append(all, distance(tb, server, Distance{Delay: delay * time.Millisecond, Callers: n}, lasts))
		}
	}
	return all
}

func distance(tb testing.TB, server *redistest.Server, d Distance, lasts time.Duration) Distance {
	tb.Helper()
	proxy := faultproxy.Start(tb, server.Addr)
	defer proxy.Close()
	proxy.Delay(d.Delay)
	client := redis.NewClient(runtime.TuneRedis(&redis.Options{Addr: proxy.Addr}))
	defer client.Close()
	limiter := runtime.New(runtime.NewRedisStore(client), runtime.WithLogger(silent))
	r := &runtime.Rule{Name: "distance", Prefix: "distance:", Window: time.Hour, Max: rule.MaxLog, Storage: runtime.StoragePacked}

	var mu sync.Mutex
	var took []time.Duration
	var wait sync.WaitGroup
	start := time.Now()
	measured := start.Add(time.Second)
	for i := range d.Callers {
		wait.Go(func() {
			ctx, cancel := context.WithCancel(context.Background()) // as a request has one
			defer cancel()
			for k := 0; ; k++ {
				begin := time.Now()
				if begin.Sub(measured) > lasts {
					return
				}
				got, err := limiter.Take(ctx, r.Limit(runtime.NewKey().AddInt(int64(i)).AddInt(int64(k%4))))
				decided := err == nil && got.Source == rule.SourceStore
				if begin.Before(measured) {
					continue
				}
				mu.Lock()
				d.Calls++
				took = append(took, time.Since(begin))
				if !decided {
					d.Undecided++
				}
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	d.P50, d.P99, _ = quantiles(took)
	return d
}
