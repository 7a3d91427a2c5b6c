package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	goruntime "runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
)

// orders are what a process is told.
type orders struct {
	Process    uint16
	Standalone string   // address of the proxy before the server
	Cluster    []string // addresses of the nodes
	Overrides  string   // file
	Start      time.Time
	Round      time.Duration
	Rounds     uint32    // how many the soak has
	First      uint32    // the round to begin with
	Until      time.Time // when to leave, at the end of a round or in its middle
	Rate       float64   // calls a second
	Exact      bool      // whether to make calls that are judged exactly
	Profiles   string    // directory for a heap profile of each round, "": none
}

// callers is how many goroutines of a process make calls.
const callers = 4

// timeout is how long a call waits for Redis. It is long, since the machine may be
// busy with something else.
const timeout = 250 * time.Millisecond

// A process makes calls, and tells what became of each.
type process struct {
	orders
	out   io.Writer
	sites []*site

	mu     sync.Mutex // guards failed
	failed error
}

// A site is a process's limiter on one Redis.
type site struct {
	store   runtime.Store
	limiter *runtime.Limiter
	close   func() error
}

// buffer is the size of each of the two buffers of a connection, in bytes: a
// thirty-second of the default, and a 128th of that for pipelines. A client opens
// connections at every fault, up to the size of its pools, and keeps them. Their
// buffers were most of the heap, and hid what else grew.
const buffer = 1 << 10

// serve is a process from its begin to its end. It fails if a goroutine is left.
func serve(ctx context.Context, text string, out io.Writer) error {
	p := &process{out: out}
	if err := json.Unmarshal([]byte(text), &p.orders); err != nil {
		return err
	}
	logging.Disable()
	if p.Profiles != "" {
		goruntime.MemProfileRate = 1
	}
	before := goruntime.NumGoroutine()
	p.open()
	for round := p.First; round < p.Rounds && ctx.Err() == nil; round++ {
		begin := p.Start.Add(time.Duration(round) * p.Round)
		if !begin.Before(p.Until) {
			break
		}
		sleepUntil(ctx, begin)
		p.round(ctx, round, earlier(p.Until, begin.Add(calling(p.Round))))
	}
	p.close()
	return errors.Join(p.failed, gone(before))
}

// calling is for how long of a round calls are made. In the rest they end, and are
// judged.
func calling(round time.Duration) time.Duration { return round * 17 / 20 }

// gone waits until no more goroutines run than before.
func gone(before int) error {
	var n int
	for range 500 {
		if n = goruntime.NumGoroutine(); n <= before {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	stacks := make([]byte, 1<<16)
	return fmt.Errorf("%d goroutines are left of the limiters:\n%s", n-before, stacks[:goruntime.Stack(stacks, true)])
}

// open makes a limiter on each Redis.
func (p *process) open() {
	for _, client := range []redis.UniversalClient{
		redis.NewClient(runtime.TuneRedis(&redis.Options{Addr: p.Standalone, ReadBufferSize: buffer, WriteBufferSize: buffer,
			PipelineReadBufferSize: buffer, PipelineWriteBufferSize: buffer})),
		redis.NewClusterClient(runtime.TuneRedis(&redis.ClusterOptions{Addrs: p.Cluster, ReadBufferSize: buffer, WriteBufferSize: buffer,
			PipelineReadBufferSize: buffer, PipelineWriteBufferSize: buffer})),
	} {
		store := runtime.NewRedisStore(client, runtime.WithTimeout(timeout))
		limiter := runtime.New(store,
			runtime.WithNamespace("soak"),
			runtime.WithReplicas(replicas),
			runtime.WithOverrides(override.File(p.Overrides), 0),
			runtime.WithLogger(slog.New(slog.DiscardHandler)))
		p.sites = append(p.sites, &site{store, limiter, func() error {
			return errors.Join(limiter.Close(), store.Close(), client.Close())
		}})
	}
}

func (p *process) close() {
	for _, s := range p.sites {
		p.fail(s.close())
	}
}

// round makes the calls of one round, and says when the last has ended.
func (p *process) round(ctx context.Context, round uint32, end time.Time) {
	var wait sync.WaitGroup
	for range callers {
		wait.Go(func() {
			for ctx.Err() == nil {
				// From 1 to 7 calls in a row, so that calls meet.
				n := 1 + rand.IntN(7)
				next := time.Now().Add(time.Duration(rand.ExpFloat64() * float64(n*callers) / p.Rate * float64(time.Second)))
				if next.After(end) {
					return
				}
				sleepUntil(ctx, next)
				p.calls(ctx, round, n)
			}
		})
	}
	wait.Go(func() { p.hold(ctx, round, end) })
	wait.Go(func() { p.guest(ctx, round) })
	wait.Wait()
	e := entry{What: over, Round: round, Process: p.Process}
	e.setReport(lookAtSelf())
	if p.Profiles != "" {
		p.fail(p.profile(round))
	}
	p.tell(&e)
}

// guests is added to the number of a process for its guests, which decide alone
// beside it.
const guests = 1 << 15

// guest makes some calls by limiters that are opened for them and closed: nothing of
// them may stay.
func (p *process) guest(ctx context.Context, round uint32) {
	g := &process{orders: p.orders, out: p.out}
	g.Process |= guests
	g.open()
	for range 5 {
		g.calls(ctx, round, 2)
	}
	g.close()
	p.fail(g.failed)
}

// lookAtSelf measures this process when it rests, after a collection.
func lookAtSelf() report {
	debug.FreeOSMemory()
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return report{int64(m.HeapAlloc), residentMemory(), int64(goruntime.NumGoroutine())}
}

func (p *process) tell(e *entry) {
	p.fail(e.write(p.out))
}

// fail keeps the first error.
func (p *process) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed == nil {
		p.failed = err
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func sleepUntil(ctx context.Context, t time.Time) {
	select {
	case <-time.After(time.Until(t)):
	case <-ctx.Done():
	}
}
