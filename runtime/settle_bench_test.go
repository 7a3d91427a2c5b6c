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
