package runtime_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// Streams of eight limiters top up, crash, are cancelled, end and settle. They never use more
// than the budget, and when all is over nothing is held but what crashed streams have lost.
func TestMeterStreamsOnRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for name, r := range map[string]*runtime.Rule{
		"period":  {Algorithm: runtime.FixedWindow, Period: rule.Year},
		"crash":   {Algorithm: runtime.FixedWindow, Period: rule.Year},
		"reserve": {Algorithm: runtime.FixedWindow, Period: rule.Year, Reserve: time.Minute},
		"counter": {Algorithm: runtime.SlidingCounter, Window: 24 * time.Hour},
		"log":     {Algorithm: runtime.SlidingLog, Window: 24 * time.Hour, Storage: runtime.StoragePacked},
	} {
		t.Run(name, func(t *testing.T) {
			crash := name == "crash"
			r.Name, r.Max = "streams-"+name, int64(effort.Choose(8_000, 40_000))
			tenant := &runtime.Rule{Name: "tenant-" + r.Name, Algorithm: runtime.FixedWindow, Window: 24 * time.Hour, Max: 1_000_000}
			limits := []runtime.Limit{r.Limit(nil), tenant.Limit(nil)}
			var sent atomic.Int64
			var all sync.WaitGroup
			streams := effort.Choose(25, 125)
			for i := range 8 {
				client := server.Client(t)
				limiter := onRedis(client)
				var ended sync.WaitGroup
				for range streams {
					ended.Go(func() { sent.Add(stream(t, limiter, limits, i == 0 && crash)) })
				}
				all.Go(func() {
					if i == 0 && crash { // what it holds then is lost
						time.Sleep(20 * time.Millisecond)
						_ = client.Close()
					}
					ended.Wait()
					_ = limiter.Close()
				})
			}
			all.Wait()
			limiter, total := onRedis(server.Client(t)), sent.Load()
			if d, err := limiter.Take(context.Background(), limits...); err == nil {
				m := limiter.Meter(context.Background(), d, 0, 0)
				total += used(t, m, 0, 1, 3)
				m.Close()
			}
			ok(t, limiter.Close())
			if total > r.Max || total < r.Max && !crash {
				t.Errorf("%d of %d units used", total, r.Max)
			}
			if got := 1_000_000 - left(t, limiter, tenant.Limit(nil)); got < 3*total || got > 3*total && !crash {
				t.Errorf("the tenant is charged %d, want %d", got, 3*total)
			}
		})
	}
}

// stream is a call that sends messages of 1 to 9 units, three times as many of the second
// limit, and ends in some way. It returns how many units it has used.
func stream(t *testing.T, limiter *runtime.Limiter, limits []runtime.Limit, crash bool) (sent int64) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	d, err := limiter.Take(ctx, limits[0].WithCost(1), limits[1].WithCost(3))
	if err != nil {
		if !errors.Is(err, runtime.ErrLimited) && !crash {
			t.Error(err)
		}
		return 0
	}
	m := limiter.Meter(ctx, d, 0, 0)
	for range rand.IntN(100) {
		n := 1 + rand.Int64N(9)
		if err := m.Charge(n, 3*n); err != nil {
			if !errors.Is(err, runtime.ErrLimited) && !crash {
				t.Error(err)
			}
			break
		}
		sent += n
		if rand.IntN(3) == 0 {
			time.Sleep(time.Duration(rand.IntN(2000)) * time.Microsecond)
		}
	}
	switch rand.IntN(4) {
	case 0:
		cancel()
		if err := m.Charge(1, 3); !errors.Is(err, context.Canceled) && !errors.Is(err, runtime.ErrLimited) && !crash {
			t.Error(err)
		}
	case 1:
		go cancel() // at any moment
		if m.Charge(1, 3) == nil {
			sent++
		}
	}
	m.Close()
	return sent
}
