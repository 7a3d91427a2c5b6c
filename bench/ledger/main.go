// Ledger measures what it costs to have what calls use in Postgres: by a ledger, by an entry in a stream
// of Redis for each call with a consumer, and by an INSERT for each call, beside the same limit without.
//
// Usage:
//
//	go run ./ledger [-write results/ledger.md] [-round 5s] [-rounds 5]
//
// It starts a Redis and a Postgres, which does not wait for its disk. With -write the table replaces what
// stands between the lines "<!-- measured -->" and "<!-- /measured -->" of a file.
package main

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/bench/internal/load"
	"github.com/rategen/rategen/bench/internal/page"
	"github.com/rategen/rategen/bench/internal/server"
	"github.com/rategen/rategen/internal/testkit/pgtest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

const (
	callers = 64
	keys    = 10_000
)

func main() {
	write := flag.String("write", "", "file to write the table into")
	round := flag.Duration("round", 5*time.Second, "how long each way is measured at a time")
	rounds := flag.Int("rounds", 5, "how often each way is measured")
	flag.Parse()
	page.Main("ledger", *write, func(ctx context.Context) ([]byte, error) { return run(ctx, *round, *rounds) })
}

// A world is what the ways have in common.
type world struct {
	client *redis.Client
	pool   *pgxpool.Pool
}

// A measure is what came of a way in a round.
type measure struct {
	rate     float64       // decisions a second
	commands float64       // of Redis, those that scripts call among them, a decision
	cpu      float64       // of Redis, microseconds a decision
	writes   float64       // rows a decision
	behind   time.Duration // after the last call until all was written
}

func run(ctx context.Context, round time.Duration, rounds int) ([]byte, error) {
	started, err := server.Start()
	if err != nil {
		return nil, err
	}
	defer started.Stop()
	postgres, err := pgtest.Launch()
	if err != nil {
		return nil, err
	}
	defer postgres.Stop()
	w := &world{client: server.NewClient(started.Addr)}
	defer w.client.Close()
	found := make([][]measure, len(ways))
	var catchUp float64
	for range rounds {
		for i := range ways {
			err := w.renew(ctx, postgres)
			if err != nil {
				return nil, err
			}
			m, err := w.measure(ctx, &ways[i], round)
			w.pool.Close()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", ways[i].name, err)
			}
			found[i] = append(found[i], m)
		}
	}
	if err = w.renew(ctx, postgres); err == nil {
		catchUp, err = w.catchUp(ctx)
		w.pool.Close()
	}
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(table(started.Product(), round, found), "While Postgres was away %d keys were charged. A ledger then writes %.0f keys a second.\n\n", waiting, catchUp), nil
}

// renew empties Redis, and opens a pool on an empty database.
func (w *world) renew(ctx context.Context, postgres *pgtest.Server) error {
	url, err := postgres.Database()
	if err == nil {
		w.pool, err = pgxpool.New(ctx, url)
	}
	if err == nil {
		err = w.client.FlushAll(ctx).Err()
	}
	return err
}

// limiter returns one, and a limit for each key.
func (w *world) limiter(ledger rule.Ledger) (*runtime.RedisStore, *runtime.Limiter, load.Take) {
	r := &runtime.Rule{Name: "bench", Period: rule.Month, Max: rule.MaxAmount, Algorithm: runtime.FixedWindow, Ledger: ledger}
	store := runtime.NewRedisStore(w.client, runtime.WithTimeout(server.Patience))
	limiter := runtime.New(store, runtime.WithoutReports(), runtime.WithLogger(slog.New(slog.DiscardHandler)))
	return store, limiter, func(ctx context.Context, key string) load.Answer {
		if _, err := limiter.Take(ctx, r.Limit(runtime.NewKey().AddString(key))); err != nil {
			return load.Failed
		}
		return load.Admitted
	}
}

func (w *world) measure(ctx context.Context, way *way, round time.Duration) (m measure, err error) {
	take, end, err := way.begin(ctx, w)
	if err != nil {
		return m, err
	}
	c := load.Callers{Count: callers, Keys: make([]string, keys)}
	for i := range c.Keys {
		c.Keys[i] = fmt.Sprint("customer-", i)
	}
	before, cpuBefore, err := w.commands(ctx)
	if err != nil {
		return m, err
	}
	sample := c.Run(ctx, round, take)
	ended := time.Now()
	if err := end(); err != nil {
		return m, err
	}
	m.behind = time.Since(ended)
	after, cpu, err := w.commands(ctx)
	if err != nil {
		return m, err
	}
	if failed := sample.Answers[load.Failed]; failed > 0 {
		return m, fmt.Errorf("%d calls failed", failed)
	}
	n := float64(sample.Decisions())
	var rows, total int64
	if way.total != "" {
		err = w.pool.QueryRow(ctx, way.total).Scan(&total)
	}
	if err == nil && way.rows != "" {
		err = w.pool.QueryRow(ctx, way.rows).Scan(&rows)
	}
	if err == nil && way.total != "" && total != sample.Decisions() {
		err = fmt.Errorf("%d calls, and %d in Postgres", sample.Decisions(), total)
	}
	m.rate, m.commands, m.writes, m.cpu = n/sample.Elapsed.Seconds(), float64(after-before)/n, float64(rows)/n, 1e6*(cpu-cpuBefore)/n
	return m, err
}

// commands returns how many commands Redis has executed, and for how many seconds it has computed.
func (w *world) commands(ctx context.Context) (n int64, cpu float64, err error) {
	stats, err := w.client.InfoMap(ctx, "commandstats", "cpu").Result()
	for section, of := range stats {
		if section == "CPU" {
			for _, name := range []string{"used_cpu_user", "used_cpu_sys"} {
				seconds, err := strconv.ParseFloat(of[name], 64)
				if err != nil {
					return 0, 0, err
				}
				cpu += seconds
			}
			continue
		}
		for _, line := range of {
			var calls int64
			if _, err := fmt.Sscanf(line, "calls=%d,", &calls); err != nil {
				return 0, 0, err
			}
			n += calls
		}
	}
	return n, cpu, err
}

func table(product string, round time.Duration, found [][]measure) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "\n%d callers charge %d keys on %s, %d times for %v each way in turn; the medians.\n\n", callers, keys, product, len(found[0]), round)
	fmt.Fprintln(&out, "| way | decisions a second | of those without | commands of Redis a decision | its CPU a decision | rows written for 1,000 decisions | written after the last call |")
	fmt.Fprintln(&out, "|---|---:|---:|---:|---:|---:|---:|")
	for i := range ways {
		of := make([]float64, len(found[i]))
		for n, m := range found[i] {
			of[n] = m.rate / found[0][n].rate
		}
		fmt.Fprintf(&out, "| %s | %.0f | %.0f %% | %.2f | %.2f µs | %.1f | %v |\n", ways[i].name, median(found[i], func(m measure) float64 { return m.rate }), 100*median(of, func(f float64) float64 { return f }),
			median(found[i], func(m measure) float64 { return m.commands }), median(found[i], func(m measure) float64 { return m.cpu }),
			1000*median(found[i], func(m measure) float64 { return m.writes }),
			median(found[i], func(m measure) time.Duration { return m.behind }).Round(10*time.Millisecond))
	}
	fmt.Fprintln(&out)
	return out.Bytes()
}

func median[T any, N cmp.Ordered](all []T, of func(T) N) N {
	values := make([]N, len(all))
	for i := range all {
		values[i] = of(all[i])
	}
	slices.Sort(values)
	return values[len(values)/2]
}
