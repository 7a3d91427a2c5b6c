// Shares measures what it costs to divide a token bucket among tenants: beside buckets of as many keys, since calls
// of these cannot be merged either, and beside redis_rate with one key.
//
// Usage:
//
//	go run ./shares [-write FILE] [-round 1s] [-rounds 3]
//
// It starts a Redis. With -write the table replaces what stands between the lines "<!-- measured -->" and
// "<!-- /measured -->" of a file.
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
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/bench/internal/limiters"
	"github.com/rategen/rategen/bench/internal/load"
	"github.com/rategen/rategen/bench/internal/page"
	"github.com/rategen/rategen/bench/internal/server"
	"github.com/rategen/rategen/runtime"
)

var (
	tenants = []int{1, 1_000, 100_000}
	callers = []int{1, 8, 64, 256}
)

func main() {
	write := flag.String("write", "", "file to write the table into")
	round := flag.Duration("round", time.Second, "how long each way is measured at a time")
	rounds := flag.Int("rounds", 3, "how often each way is measured")
	flag.Parse()
	page.Main("shares", *write, func(ctx context.Context) ([]byte, error) { return run(ctx, *round, *rounds) })
}

// A measure is what came of a way in a round.
type measure struct {
	rate float64 // decisions a second
	cpu  float64 // of Redis, microseconds a decision
}

// The ways that are compared: tenants of one key, as many keys, and redis_rate with one key.
const (
	shared = iota
	keyed
	peer
)

func run(ctx context.Context, round time.Duration, rounds int) ([]byte, error) {
	started, err := server.Start()
	if err != nil {
		return nil, err
	}
	defer started.Stop()
	client := server.NewClient(started.Addr)
	defer client.Close()
	limiter := runtime.New(runtime.NewRedisStore(client, runtime.WithTimeout(server.Patience)), runtime.WithoutReports(), runtime.WithLogger(slog.New(slog.DiscardHandler)))
	defer limiter.Close()
	takes, err := takesOf(client, limiter)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "\nOn %s, %d times for %v each way in turn; the medians, of ratios those of each time.\n\n", started.Product(), rounds, round)
	fmt.Fprintln(&out, "| tenants | callers | decisions a second | to as many keys | to redis_rate | CPU of Redis a decision | to as many keys | to redis_rate |")
	fmt.Fprintln(&out, "|---:|---:|---:|---:|---:|---:|---:|---:|")
	for _, n := range tenants {
		if err := client.FlushAll(ctx).Err(); err != nil {
			return nil, err
		}
		keys := make([]string, n)
		for i := range keys {
			keys[i] = fmt.Sprint("tenant-", i)
		}
		if err := fill(ctx, keys, takes); err != nil {
			return nil, err
		}
		for _, c := range callers {
			found := make([][]measure, len(takes))
			for range rounds {
				for way, take := range takes {
					m, err := measureOf(ctx, client, load.Callers{Count: c, Keys: keys}, round, take)
					if err != nil {
						return nil, err
					}
					found[way] = append(found[way], m)
				}
			}
			fmt.Fprintf(&out, "| %d | %d | %s |\n", n, c, row(found))
		}
	}
	fmt.Fprintln(&out)
	return out.Bytes(), nil
}

// takesOf returns how each way asks about a call of a tenant.
func takesOf(client *redis.Client, limiter *runtime.Limiter) ([]load.Take, error) {
	bucket := runtime.Rule{Name: "keyed", Window: limiters.HotRoom.Level.Window, Max: limiters.HotRoom.Level.Max, Algorithm: runtime.TokenBucket}
	divided := bucket
	divided.Name, divided.Headroom = "shared", -1
	of := func(limit func(tenant *runtime.Key) runtime.Limit) load.Take {
		return func(ctx context.Context, key string) load.Answer {
			if _, err := limiter.Take(ctx, limit(runtime.NewKey().AddString(key))); err != nil {
				return load.Failed
			}
			return load.Admitted
		}
	}
	i := slices.IndexFunc(limiters.Peers(), func(s limiters.Shared) bool { return s.Name == limiters.Base })
	rate, err := limiters.Peers()[i].New(limiters.Server{Client: client}, limiters.HotRoom)
	return []load.Take{
		shared: of(func(tenant *runtime.Key) runtime.Limit { return divided.Limit(nil).WithShare(tenant, 1) }),
		keyed:  of(bucket.Limit),
		peer:   func(ctx context.Context, _ string) load.Answer { return rate(ctx, "provider") },
	}, err
}

// fill has each tenant be known before anything is measured.
func fill(ctx context.Context, keys []string, takes []load.Take) error {
	var all sync.WaitGroup
	var failed atomic.Int64
	for i := range 64 {
		all.Go(func() {
			for n := i; n < len(keys); n += 64 {
				if takes[shared](ctx, keys[n]) == load.Failed || takes[keyed](ctx, keys[n]) == load.Failed {
					failed.Add(1)
				}
			}
		})
	}
	all.Wait()
	if n := failed.Load(); n > 0 {
		return fmt.Errorf("%d calls failed", n)
	}
	return nil
}

// measureOf has callers ask for a time.
func measureOf(ctx context.Context, client *redis.Client, c load.Callers, round time.Duration, take load.Take) (m measure, err error) {
	before, err := cpuOf(ctx, client)
	if err != nil {
		return m, err
	}
	sample := c.Run(ctx, round, take)
	after, err := cpuOf(ctx, client)
	n := float64(sample.Decisions())
	if other := sample.Calls() - sample.Answers[load.Admitted]; err == nil && other > 0 {
		err = fmt.Errorf("%d calls were not admitted", other)
	}
	return measure{n / sample.Elapsed.Seconds(), 1e6 * (after - before) / n}, err
}

// cpuOf returns for how many seconds Redis has computed.
func cpuOf(ctx context.Context, client *redis.Client) (seconds float64, err error) {
	info, err := client.InfoMap(ctx, "cpu").Result()
	for _, name := range []string{"used_cpu_user", "used_cpu_sys"} {
		n, wrong := strconv.ParseFloat(info["CPU"][name], 64)
		seconds, err = seconds+n, cmp.Or(err, wrong)
	}
	return seconds, err
}

// row returns what came of the ways, the decisions and then the time of Redis.
func row(found [][]measure) string {
	var cells []string
	for i, of := range []func(measure) float64{func(m measure) float64 { return m.rate }, func(m measure) float64 { return m.cpu }} {
		median := func(to int) float64 {
			values := make([]float64, len(found[shared]))
			for n, m := range found[shared] {
				values[n] = of(m)
				if to != shared {
					values[n] /= of(found[to][n])
				}
			}
			slices.Sort(values)
			return values[len(values)/2]
		}
		cells = append(cells, fmt.Sprintf([]string{"%.0f", "%.2f µs"}[i]+" | %.2f | %.2f", median(shared), median(keyed), median(peer)))
	}
	return strings.Join(cells, " | ")
}
