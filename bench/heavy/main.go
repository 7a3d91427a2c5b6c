// Heavy measures how long cheap calls take beside many that cost more, on a Redis of its own.
//
// Usage:
//
//	go run ./heavy [-write results/heavy.md] [-round 3s]
//
// Each process of the table is a limiter with connections of its own. With -write the table replaces what
// stands between the lines "<!-- measured -->" and "<!-- /measured -->" of a file.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/rategen/rategen/bench/internal/load"
	"github.com/rategen/rategen/bench/internal/page"
	"github.com/rategen/rategen/bench/internal/server"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// Callers of each process.
const (
	heavy = 200
	cheap = 8
	pause = time.Millisecond // of a cheap one between calls, and of any after one without a decision
)

// bench has a window that is over soon, so that logs are about as long as elsewhere.
var bench = &runtime.Rule{Name: "bench", Window: time.Second, Max: 1_000_000}

func main() {
	write := flag.String("write", "", "file to write the table into")
	round := flag.Duration("round", 3*time.Second, "how long each line is measured")
	flag.Parse()
	page.Main("heavy", *write, func(ctx context.Context) ([]byte, error) { return run(ctx, *round) })
}

func run(ctx context.Context, round time.Duration) ([]byte, error) {
	redis, err := server.Start()
	if err != nil {
		return nil, err
	}
	defer redis.Stop()
	client := server.NewClient(redis.Addr)
	defer client.Close()
	var out bytes.Buffer
	fmt.Fprintf(&out, "On %s, %v for each line:\n\n", redis.Product(), round)
	fmt.Fprintln(&out, "| cost of heavy calls | processes | p50 | p99 | at most | cheap calls | undecided | heavy calls a second |")
	fmt.Fprintln(&out, "|---:|---:|---:|---:|---:|---:|---:|---:|")
	for _, cost := range []int64{1, 30, 100, 250} {
		for _, processes := range []int{1, 2, 4, 8} {
			if err := client.FlushAll(ctx).Err(); err != nil {
				return nil, err
			}
			m, err := measure(ctx, redis.Addr, cost, processes, round)
			if err != nil {
				return nil, err
			}
			quantile := func(q float64) string { return fmt.Sprintf("%.1f ms", m.took.Quantile(q).Seconds()*1000) }
			fmt.Fprintf(&out, "| %d | %d | %s | %s | %s | %d | %d | %.0f |\n", cost, processes, quantile(0.5), quantile(0.99), quantile(1), m.calls, m.undecided, float64(m.heavy)/round.Seconds())
		}
	}
	return out.Bytes(), nil
}

// A measurement is what came of the calls of all processes.
type measurement struct {
	mu               sync.Mutex
	took             load.Histogram // of cheap calls
	calls, undecided int            // of these
	heavy            int            // calls that were decided
	err              error          // of a call that is not valid
}

// A take makes a call, and reports whether Redis has decided it.
type take func(key string, cost int64) (decided bool, err error)

func measure(ctx context.Context, addr string, cost int64, processes int, round time.Duration) (*measurement, error) {
	var takes []take
	for range processes {
		client := server.NewClient(addr)
		defer client.Close()
		store := runtime.NewRedisStore(client)
		defer store.Close()
		limiter := runtime.New(store, runtime.WithoutReports(), runtime.WithLogger(slog.New(slog.DiscardHandler)))
		defer limiter.Close()
		one := func(key string, cost int64) (bool, error) {
			d, err := limiter.Take(context.Background(), bench.Limit(runtime.NewKey().AddString(key)).WithCost(cost))
			return d.Source == rule.SourceStore, err
		}
		for decided := false; !decided && ctx.Err() == nil; time.Sleep(pause) { // has connections made
			var err error
			if decided, err = one("first", 1); err != nil {
				return nil, err
			}
		}
		takes = append(takes, one)
	}
	m := new(measurement)
	ctx, end := context.WithTimeout(ctx, round)
	defer end()
	var callers sync.WaitGroup
	for _, one := range takes {
		for i := range heavy {
			callers.Go(func() { m.call(ctx, one, "heavy"+strconv.Itoa(i), cost, false) })
		}
		for i := range cheap {
			callers.Go(func() { m.call(ctx, one, strconv.Itoa(i), 1, true) })
		}
	}
	callers.Wait()
	return m, m.err
}

// call makes one call after the other. Cheap ones are timed, and come with pauses.
func (m *measurement) call(ctx context.Context, one take, key string, cost int64, cheap bool) {
	for ctx.Err() == nil {
		began := time.Now()
		decided, err := one(key, cost)
		m.add(time.Since(began), decided, cheap, err)
		if cheap || !decided {
			time.Sleep(pause)
		}
	}
}

func (m *measurement) add(took time.Duration, decided, cheap bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err != nil:
		m.err = err
	case !cheap && decided:
		m.heavy++
	case cheap:
		m.took.Add(took)
		m.calls++
		if !decided {
			m.undecided++
		}
	}
}
