package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/bench/internal/judge"
	"github.com/rategen/rategen/bench/internal/server"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rawstore"
)

// A worker is one process that hammers.
type worker struct {
	config
	addr   string        // of the server
	output string        // file of the records
	offset time.Duration // how far this process's clock is off
}

// now is this process's clock. Only the control asks it for a decision.
func (w *worker) now() time.Time { return time.Now().Add(w.offset) }

// A taker decides calls. It is the part of a [runtime.Store] that is checked.
type taker interface {
	Take(ctx context.Context, calls []rawstore.Call) error
}

// quiet keeps a limiter from logging its refusals.
var quiet = runtime.WithLogger(slog.New(slog.DiscardHandler))

// inFlight is how many batches a process has under way at once.
const inFlight = 2

// run makes the process's share of the decisions and writes down each.
func (w *worker) run(ctx context.Context) error {
	client := server.NewClient(w.addr)
	defer client.Close()
	shared := algorithms[w.algorithms].history != nil
	options := []runtime.RedisOption{runtime.WithTimeout(server.Patience)}
	if !shared {
		// A refusal that the process gives by itself has no time by Redis's
		// clock that could be checked.
		options = append(options, runtime.WithRefusalMemory(0))
	}
	var store taker = rawstore.Wrap(runtime.NewRedisStore(client, options...))
	if w.algorithms == controlName {
		store = &control{client: client, now: w.now}
	}
	file, err := os.Create(w.output)
	if err != nil {
		return err
	}
	defer file.Close()
	size := 1 << 20
	if algorithms[w.algorithms].leased || algorithms[w.algorithms].streams {
		size = 16 // or a process that is killed would tell little
	}
	out := bufio.NewWriterSize(file, size)
	s := &share{limits: newLimits(w.algorithms, w.config), end: time.Now().Add(w.duration)}
	s.left.Store(int64((w.decisions + w.processes - 1) / w.processes))
	var wait sync.WaitGroup
	var mu sync.Mutex // guards what follows
	var failed error
	s.write = func(records []byte) error {
		mu.Lock()
		defer mu.Unlock()
		_, err := out.Write(records)
		return err
	}
	run := func(n int, call func() error) {
		for range n {
			wait.Go(func() {
				if err := call(); err != nil {
					mu.Lock()
					failed = err
					mu.Unlock()
				}
			})
		}
	}
	redis := runtime.NewRedisStore(client, runtime.WithTimeout(server.Patience))
	switch {
	case algorithms[w.algorithms].leased:
		var store runtime.Store = redis
		if w.algorithms == unlengthened {
			store = newShortStore(redis, s.limits)
		}
		limiter := runtime.New(store, quiet)
		run(callers, func() error { return w.callLeased(ctx, limiter, s) })
		defer limiter.Close()
	case algorithms[w.algorithms].streams:
		limiter := runtime.New(redis, quiet)
		run(1, func() error { return w.callStreams(ctx, limiter, s) })
	case algorithms[w.algorithms].settled:
		limiter := runtime.New(runtime.NewRedisStore(client, options...), quiet)
		run(callers, func() error { return w.callSettled(ctx, limiter, s) })
	case shared:
		run(callers, func() error { return w.callShared(ctx, store, s) })
	default:
		run(inFlight, func() error { return w.callTogether(ctx, store, s) })
	}
	var g growth
	watching, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	if w.duration > 0 {
		watch.Go(func() { g.watch(watching, w.duration) })
	}
	wait.Wait()
	stop()
	watch.Wait()
	if failed == nil {
		failed = cmp.Or(ctx.Err(), g.err())
	}
	failed = cmp.Or(failed, out.Flush())
	failed = cmp.Or(failed, file.Close())
	if failed != nil {
		return fmt.Errorf("%s: %w", w.algorithms, failed)
	}
	return nil
}

// A share is what a process has to do.
type share struct {
	limits []limit
	left   atomic.Int64 // decisions
	end    time.Time
	write  func(records []byte) error
}

// more takes one of the decisions, and reports whether it is to be made.
func (w *worker) more(ctx context.Context, s *share) bool {
	return ctx.Err() == nil && (w.duration > 0 && time.Now().Before(s.end) || w.duration == 0 && s.left.Add(-1) >= 0)
}

// callTogether makes batches of many calls until none is left or the time is
// over, and writes down each call.
func (w *worker) callTogether(ctx context.Context, store taker, s *share) error {
	t := newBatch(s.limits)
	for ctx.Err() == nil {
		if w.duration > 0 && time.Now().After(s.end) {
			return nil
		}
		n := 1 + rand.IntN(judge.MaxBatch)
		if w.duration == 0 {
			n = min(n, int(s.left.Add(-int64(n)))+n)
		}
		if n <= 0 {
			return nil
		}
		t.fill(n, w.now())
		records, err := t.take(ctx, store)
		if err == nil {
			err = s.write(records)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
