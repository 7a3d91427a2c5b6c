package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/bench/internal/page"
	"github.com/rategen/rategen/bench/internal/server"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rawstore"
)

// inBatch is how many keys a full request has.
const inBatch = 128

// A way is one way to count.
type way struct {
	directive string
	rule      runtime.Rule
}

var ways = []way{
	{"`sliding-log` `storage=zset`", runtime.Rule{}},
	{"`sliding-log` `storage=packed`", runtime.Rule{Storage: runtime.StoragePacked}},
	{"`sliding-counter` `buckets=60`", runtime.Rule{Algorithm: runtime.SlidingCounter}},
	{"`fixed-window`", runtime.Rule{Algorithm: runtime.FixedWindow}},
	{"`token-bucket`", runtime.Rule{Algorithm: runtime.TokenBucket}},
	{"`concurrency`", runtime.Rule{Algorithm: runtime.Concurrency}},
}

// used is what a Redis has used since it started.
type used struct {
	cpu     time.Duration
	in, out int64 // bytes
}

// usedBy reads what a Redis has used.
func usedBy(ctx context.Context, client *redis.Client) (u used, err error) {
	info, err := client.InfoMap(ctx, "cpu", "stats").Result()
	if err != nil {
		return u, err
	}
	for _, name := range []string{"used_cpu_user_main_thread", "used_cpu_sys_main_thread"} {
		seconds, err := strconv.ParseFloat(info["CPU"][name], 64)
		if err != nil {
			return u, fmt.Errorf("redis does not say %s: %w", name, err)
		}
		u.cpu += time.Duration(seconds * float64(time.Second))
	}
	if u.in, err = strconv.ParseInt(info["Stats"]["total_net_input_bytes"], 10, 64); err == nil {
		u.out, err = strconv.ParseInt(info["Stats"]["total_net_output_bytes"], 10, 64)
	}
	return u, err
}

// A price is what one decision costs.
type price struct{ micros, in, out float64 }

// measureAll prints what the decisions of all algorithms cost.
func measureAll(ctx context.Context, file string) error {
	redis, err := server.Start(ctx)
	if err != nil {
		return err
	}
	defer redis.Stop()
	client := server.NewClient(redis.Socket)
	defer client.Close()
	product, err := redis.Product(ctx)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "A decision, half of them refused, at `max=100` (%s; the times are of one core of the machine that measured them):\n\n", product)
	fmt.Fprint(&out, "| | µs alone | a second | µs, 128 keys a request | a second | bytes to and from Redis | bytes a key |\n|---|---:|---:|---:|---:|---:|---:|\n")
	for _, w := range ways {
		alone, err := measure(ctx, client, w, 1)
		if err != nil {
			return err
		}
		together, err := measure(ctx, client, w, inBatch)
		if err != nil {
			return err
		}
		size, err := client.MemoryUsage(ctx, w.key(0)).Result()
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "| %s | %.1f | %s | %.1f | %s | %.0f + %.0f | %d |\n", w.directive, alone.micros, thousands(1e6/alone.micros),
			together.micros, thousands(1e6/together.micros), together.in, together.out, size)
	}
	return page.Write(file, out.Bytes())
}

// thousands returns a number rounded to thousands.
func thousands(n float64) string { return fmt.Sprintf("%.0f,000", n/1000) }

func (w way) key(i int) string {
	return "capacity:" + strings.NewReplacer("`", "", " ", ":").Replace(w.directive) + ":" + strconv.Itoa(i)
}

// measure returns what a decision costs in requests of so many keys, of which each
// holds about 100 events: the median of several parts.
func measure(ctx context.Context, client *redis.Client, w way, keys int) (price, error) {
	const (
		parts = 5
		each  = 6_400 // decisions
		max   = 100
	)
	rule := w.rule
	rule.Name, rule.Window, rule.Max = "capacity", 300*time.Millisecond, max
	store := runtime.NewRedisStore(client, runtime.WithTimeout(server.Patience), runtime.WithRefusalMemory(0))
	calls := make([]rawstore.Call, keys)
	for i := range calls {
		calls[i].Charges = []rawstore.Charge{{Rule: &rule, Key: []byte(w.key(i)), Max: max, Cost: 1}}
	}
	decide := func(n int) error {
		for range n / keys {
			if err := rawstore.Wrap(store).Take(ctx, calls); err != nil {
				return err
			}
			for i := range calls {
				if calls[i].Err != nil {
					return calls[i].Err
				}
			}
		}
		return nil
	}
	if err := decide(2 * max * keys); err != nil { // until all keys are full
		return price{}, err
	}
	var prices []price
	for range parts {
		before, err := usedBy(ctx, client)
		if err != nil {
			return price{}, err
		}
		if err := decide(each); err != nil {
			return price{}, err
		}
		after, err := usedBy(ctx, client)
		if err != nil {
			return price{}, err
		}
		n := float64(each / keys * keys)
		prices = append(prices, price{
			float64((after.cpu - before.cpu).Nanoseconds()) / 1000 / n, float64(after.in-before.in) / n, float64(after.out-before.out) / n,
		})
	}
	slices.SortFunc(prices, func(a, b price) int { return int(1000 * (a.micros - b.micros)) })
	return prices[parts/2], nil
}
