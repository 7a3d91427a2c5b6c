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

	"golang.org/x/sync/errgroup"

	"github.com/rategen/rategen/bench/internal/judge"
	"github.com/rategen/rategen/bench/internal/server"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rawstore"
)

// A worker is one process that hammers.
type worker struct {
	config
	addr   string // of the server
	output string // file of the records
}

// quiet keeps a limiter from logging its refusals.
var quiet = runtime.WithLogger(slog.New(slog.DiscardHandler))

// inFlight is how many batches a process has under way at once.
const inFlight = 2

// run makes the process's share of the decisions and writes down each.
func (w *worker) run(ctx context.Context) error {
	client := server.NewClient(w.addr)
	defer client.Close()
	a := algorithms[w.algorithms]
	options := []runtime.RedisOption{runtime.WithTimeout(server.Patience)}
	if a.check != nil || a.settled {
		// A refusal that the process gives by itself has no time by Redis's
		// clock that could be checked.
		options = append(options, runtime.WithRefusalMemory(0))
	}
	file, err := os.Create(w.output)
	if err != nil {
		return err
	}
	defer file.Close()
	size := 1 << 20
	if a.leased || a.streams {
		size = 16 // or a process that is killed would tell little
	}
	out := bufio.NewWriterSize(file, size)
	s := &share{limits: newLimits(w.algorithms, w.config), end: time.Now().Add(w.duration)}
	s.left.Store(int64((w.decisions + w.processes - 1) / w.processes))
	var mu sync.Mutex // guards out
	s.write = func(records []byte) error {
		mu.Lock()
		defer mu.Unlock()
		_, err := out.Write(records)
		return err
	}
	redis := runtime.NewRedisStore(client, options...)
	var store runtime.Store = redis
	if a.mistake != nil {
		store = mistaken(redis, s.limits, a.mistake)
	}
	limiter := runtime.New(store, quiet)
	var calls errgroup.Group
	run := func(n int, call func() error) {
		for range n {
			calls.Go(call)
		}
	}
	switch {
	case a.leased:
		run(callers, func() error { return w.callLeased(ctx, limiter, s) })
	case a.streams:
		run(1, func() error { return w.callStreams(ctx, limiter, s) })
	case a.settled:
		run(callers, func() error { return w.callSettled(ctx, limiter, s) })
	case a.history != nil:
		run(callers, func() error { return w.callShared(ctx, rawstore.Wrap(store), s) })
	default:
		run(inFlight, func() error { return w.callTogether(ctx, rawstore.Wrap(store), s) })
	}
	var g growth
	watching, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	if w.duration > 0 {
		watch.Go(func() { g.watch(watching, w.duration) })
	}
	failed := calls.Wait()
	stop()
	watch.Wait()
	if failed := cmp.Or(failed, limiter.Close(), ctx.Err(), g.err(), out.Flush(), file.Close()); failed != nil {
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

// record makes calls on random keys until none is left or the time is over, and writes down each.
func record[R any](ctx context.Context, w *worker, s *share, call func(key int) (R, error)) error {
	var output []byte
	for w.more(ctx, s) {
		r, err := call(rand.IntN(len(s.limits)))
		if err != nil {
			return err
		}
		output = judge.Append(output, &r)
		if len(output) < 1<<13 {
			continue
		}
		if err := s.write(output); err != nil {
			return err
		}
		output = output[:0]
	}
	return s.write(output)
}

// callTogether makes batches of many calls until none is left or the time is
// over, and writes down each call.
func (w *worker) callTogether(ctx context.Context, store rawstore.Store, s *share) error {
	t := newBatch(s.limits)
	for w.more(ctx, s) {
		n := 1 + rand.IntN(judge.MaxBatch)
		s.left.Add(1 - int64(n)) // more has taken one
		t.fill(n)
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
