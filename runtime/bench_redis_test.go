package runtime_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/faultproxy"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// BenchmarkSettle measures what settling adds to a call: how many times longer a call
// takes that is settled, and how many times fewer are made, beside calls that are not.
// Both have short turns, one after the other, so that what else the machine does meets
// both. Redis is some milliseconds away.
func BenchmarkSettle(b *testing.B) {
	server := redistest.Start(b)
	for _, distance := range []time.Duration{0, time.Millisecond, 5 * time.Millisecond} {
		for _, callers := range []int{1, 4, 16, 64, 256} {
			for name, settled := range map[string]int64{"refund": 0, "less": 1, "more": 3} {
				b.Run(fmt.Sprintf("%s/%v/%d", name, distance, callers), func(b *testing.B) {
					addr := server.Addr
					if distance > 0 {
						proxy := faultproxy.Start(b, addr)
						proxy.Delay(distance)
						addr = proxy.Addr
					}
					client := redis.NewClient(runtime.TuneRedis(&redis.Options{Addr: addr}))
					defer client.Close()
					limiter := runtime.New(runtime.NewRedisStore(client, runtime.WithTimeout(time.Second)), quiet, closed)
					defer limiter.Close()
					rule := &runtime.Rule{Name: name, Prefix: name + ":", Window: time.Second, Max: 1_000_000, Algorithm: runtime.TokenBucket}
					measureSettled(b, limiter, rule, callers, settled, 20*time.Millisecond+8*distance)
				})
			}
		}
	}
}

// measureSettled reports what settling at a cost adds to calls on a rule at cost 2.
func measureSettled(b *testing.B, limiter *runtime.Limiter, rule *runtime.Rule, callers int, settled int64, turn time.Duration) {
	limits := make([]runtime.Limit, 1000)
	for i := range limits {
		limits[i] = rule.Limit(runtime.NewKey().AddString("user-" + strconv.Itoa(i))).WithCost(2)
	}
	run := func(settles bool) (calls, p50 float64) {
		var (
			stop atomic.Bool
			mu   sync.Mutex
			took []time.Duration
			all  sync.WaitGroup
		)
		for i := range callers {
			all.Go(func() {
				var mine []time.Duration
				for next := i * 31; !stop.Load(); next++ {
					limit, began := limits[next%len(limits)], time.Now()
					d, err := limiter.Take(context.Background(), limit)
					if err != nil {
						b.Error(err)
						return
					}
					if settles {
						limiter.SettleLater(context.Background(), d, limit.WithSettled(settled))
					}
					mine = append(mine, time.Since(began))
				}
				mu.Lock()
				defer mu.Unlock()
				took = append(took, mine...)
			})
		}
		began := time.Now()
		time.Sleep(turn)
		stop.Store(true)
		all.Wait()
		slices.Sort(took)
		return float64(len(took)) / time.Since(began).Seconds(), took[len(took)/2].Seconds()
	}
	var fewer, longer []float64
	run(true)
	for b.Loop() {
		without, plain := run(false)
		with, slow := run(true)
		fewer, longer = append(fewer, without/with), append(longer, slow/plain)
	}
	slices.Sort(fewer)
	slices.Sort(longer)
	b.ReportMetric(fewer[len(fewer)/2], "×calls")
	b.ReportMetric(longer[len(longer)/2], "×p50")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkRedisTake has 64 callers ask about 1,000 keys: on a server, where a
// trip is one script, and on a cluster, where it is one for nearly every call.
// Four allocations a call are the bound, of which one is the key's.
func BenchmarkRedisTake(b *testing.B) {
	b.Run("server", func(b *testing.B) { benchmarkRedisTake(b, redistest.Start(b).Client(b)) })
	b.Run("cluster", func(b *testing.B) {
		cluster := redistest.StartCluster(b)
		cluster.WaitReady()
		benchmarkRedisTake(b, cluster.Client(b))
	})
}

func benchmarkRedisTake(b *testing.B, client redis.UniversalClient) {
	const callers, keys = 64, 1000
	limiter := runtime.New(runtime.NewRedisStore(client, patient), quiet)
	rule := &runtime.Rule{Name: "r", Prefix: "bench:", Window: time.Hour, Max: 1_000_000_000, Algorithm: runtime.TokenBucket}
	ids := make([]string, keys)
	for i := range ids {
		ids[i] = fmt.Sprint(i)
	}
	run := func(calls int64) {
		var last atomic.Int64
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				for i := last.Add(1); i <= calls; i = last.Add(1) {
					if _, err := limiter.Take(ctx, rule.Limit(key(ids[i%keys]))); err != nil {
						b.Error(err)
					}
				}
			})
		}
		all.Wait()
	}
	run(5 * keys)
	b.ReportAllocs()
	b.ResetTimer()
	run(int64(b.N))
}

// BenchmarkCold is how long it takes a program with 1,000 rules to register them, and
// until its first call is decided by a Redis that knows no script.
func BenchmarkCold(b *testing.B) {
	server := redistest.Start(b)
	rules := make([]*runtime.Rule, 1000)
	for i := range rules {
		rules[i] = &runtime.Rule{Name: fmt.Sprintf("rule%d", i), Prefix: fmt.Sprintf("rule%d:", i), Window: time.Hour, Max: 1_000_000, Algorithm: runtime.FixedWindow}
	}
	for _, warm := range []bool{false, true} {
		b.Run(fmt.Sprintf("warm=%v", warm), func(b *testing.B) {
			var registered, warmed, first []time.Duration
			for range b.N {
				client := server.Client(b)
				if err := client.ScriptFlush(b.Context()).Err(); err != nil {
					b.Fatal(err)
				}
				_ = client.Close()
				client = server.Client(b)
				limiter := runtime.New(runtime.NewRedisStore(client, patient), quiet)
				began := time.Now()
				limiter.Register(rules...)
				registered = append(registered, time.Since(began))
				if began = time.Now(); warm {
					if err := limiter.Warm(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
				warmed = append(warmed, time.Since(began))
				began = time.Now()
				if _, err := limiter.Take(b.Context(), rules[0].Limit(runtime.NewKey().AddString("k"))); err != nil {
					b.Fatal(err)
				}
				first = append(first, time.Since(began))
				_ = limiter.Close()
				_ = client.Close()
			}
			for name, times := range map[string][]time.Duration{"register": registered, "warm": warmed, "first": first} {
				slices.Sort(times)
				b.ReportMetric(float64(times[len(times)/2].Microseconds()), name+"-µs")
			}
		})
	}
}
