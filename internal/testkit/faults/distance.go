package faults

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/faultproxy"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// A Distance is what callers saw of a Redis that answers each request late, but
// within the budget.
type Distance struct {
	Delay   time.Duration
	Callers int
	Tuned   bool

	Calls, Undecided int
	Openings         int // of the circuit breaker
	P50, P99         time.Duration
	// Connecting is how many calls were not decided in the first second, in
	// which connections are made.
	Connecting int
}

// Distances has numbers of callers call a Redis at several delays, each call as
// soon as the one before was answered, by clients with default options and by
// tuned ones.
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
			for _, tuned := range []bool{false, true} {
				all = append(all, distance(tb, server, Distance{Delay: delay * time.Millisecond, Callers: n, Tuned: tuned}, lasts))
			}
		}
	}
	return all
}

func distance(tb testing.TB, server *redistest.Server, d Distance, lasts time.Duration) Distance {
	tb.Helper()
	proxy := faultproxy.Start(tb, server.Addr)
	defer proxy.Close()
	proxy.Delay(d.Delay)
	options := &redis.Options{Addr: proxy.Addr}
	clients{tuned: d.Tuned}.tune(options)
	client := redis.NewClient(options)
	defer client.Close()
	var openings atomic.Int64
	limiter := runtime.New(runtime.NewRedisStore(client), runtime.WithLogger(silent), countOpenings(&openings))
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
				mu.Lock()
				if begin.Before(measured) {
					if !decided {
						d.Connecting++
					}
				} else {
					d.Calls++
					took = append(took, time.Since(begin))
					if !decided {
						d.Undecided++
					}
				}
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	d.Openings = int(openings.Load())
	d.P50, d.P99, _ = quantiles(took)
	return d
}

// A Stall is what callers saw of a Redis that stopped once.
type Stall struct {
	Lasts   time.Duration
	Callers int
	Tuned   bool

	// Undecided is how many calls were not decided that arrived during the
	// stall, Others how many that did not.
	Undecided, Others int
	Openings          int           // of the circuit breaker
	OpenAfter         time.Duration // when it first opened, from the beginning of the stall
}

// Stalls has Redis stop for several times, under callers who each call again a
// millisecond after they were answered.
func Stalls(tb testing.TB, short bool) []Stall {
	tb.Helper()
	lengths := []time.Duration{20, 40, 65, 80, 100, 120, 140, 149, 500}
	if short {
		lengths = []time.Duration{65, 140, 500}
	}
	var all []Stall
	server := redistest.Start(tb)
	for _, lasts := range lengths {
		for _, n := range []int{1, 8, 64} {
			for _, tuned := range []bool{false, true} {
				all = append(all, stall(tb, server, Stall{Lasts: lasts * time.Millisecond, Callers: n, Tuned: tuned}))
			}
		}
	}
	return all
}

func stall(tb testing.TB, server *redistest.Server, s Stall) Stall {
	tb.Helper()
	options := &redis.Options{Addr: server.Addr}
	clients{tuned: s.Tuned}.tune(options)
	client := redis.NewClient(options)
	defer client.Close()
	var openings atomic.Int64
	var begin, end, opened atomic.Int64 // since start
	start := time.Now()
	limiter := runtime.New(runtime.NewRedisStore(client), runtime.WithLogger(silent), runtime.WithObserver(breakerOpened(func() {
		openings.Add(1)
		opened.CompareAndSwap(0, int64(time.Since(start)))
	})))
	r := &runtime.Rule{Name: "stall", Prefix: "stall:", Window: time.Hour, Max: rule.MaxLog, Storage: runtime.StoragePacked}

	stop := make(chan struct{})
	var during, others atomic.Int64
	var wait sync.WaitGroup
	for i := range s.Callers {
		wait.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
				}
				arrived := int64(time.Since(start))
				got, err := limiter.Take(context.Background(), r.Limit(runtime.NewKey().AddInt(int64(i))))
				if err == nil && got.Source == rule.SourceStore || time.Duration(arrived) < 200*time.Millisecond {
					continue
				}
				if begin.Load() != 0 && arrived >= begin.Load()-int64(5*time.Millisecond) && (end.Load() == 0 || arrived <= end.Load()) {
					during.Add(1)
				} else {
					others.Add(1)
				}
			}
		})
	}
	time.Sleep(400 * time.Millisecond)
	begin.Store(int64(time.Since(start)))
	server.Pause()
	time.Sleep(s.Lasts)
	server.Resume()
	end.Store(int64(time.Since(start)))
	time.Sleep(400 * time.Millisecond)
	close(stop)
	wait.Wait()
	s.Undecided, s.Others, s.Openings = int(during.Load()), int(others.Load()), int(openings.Load())
	if at := opened.Load(); at != 0 {
		s.OpenAfter = time.Duration(at - begin.Load())
	}
	return s
}

func breakerOpened(opened func()) *observe.Observer {
	return &observe.Observer{Breaker: func(ev observe.BreakerEvent) {
		if ev.Open {
			opened()
		}
	}}
}

func countOpenings(n *atomic.Int64) runtime.Option {
	return runtime.WithObserver(breakerOpened(func() { n.Add(1) }))
}
