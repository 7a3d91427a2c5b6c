package runtime_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/faultproxy"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// A mixedLoad is what became of calls that come at a steady rate, whoever is done.
type mixedLoad struct {
	undecided, lost int             // calls, and settlements of decided ones
	took            []time.Duration // of each Take
}

func (l *mixedLoad) p99() time.Duration {
	slices.Sort(l.took)
	return l.took[len(l.took)*99/100]
}

// steadyLoad takes so many calls a second for a time, and refunds each when settling.
func steadyLoad(t *testing.T, limiter *runtime.Limiter, perSecond int, during time.Duration, settling bool) *mixedLoad {
	rule := &runtime.Rule{Name: "r", Prefix: fmt.Sprintf("mixed:%d:%t:", perSecond, settling), Window: time.Minute, Max: 1_000_000}
	load := new(mixedLoad)
	var mu sync.Mutex
	var wait sync.WaitGroup
	begin := time.Now()
	for n := 0; ; {
		passed := time.Since(begin)
		if passed >= during {
			break
		}
		for ; n < int(passed.Seconds()*float64(perSecond)); n++ {
			limit := rule.Limit(key(fmt.Sprint("caller-", n%100)))
			wait.Go(func() {
				start := time.Now()
				d, err := limiter.Take(t.Context(), limit)
				took := time.Since(start)
				var lost error
				if err == nil && settling {
					lost = limiter.Refund(t.Context(), d, limit)
				}
				mu.Lock()
				defer mu.Unlock()
				load.took = append(load.took, took)
				if err != nil {
					load.undecided++
				}
				if lost != nil {
					load.lost++
				}
			})
		}
		time.Sleep(time.Duration(rand.ExpFloat64() * float64(time.Second) / float64(perSecond)))
	}
	wait.Wait()
	return load
}

// TestTakesAndRefunds takes and refunds in turn, 3 ms away from Redis. Takes and
// settlements share trips: as many calls are decided as without settling, and no
// settlement is lost.
func TestTakesAndRefunds(t *testing.T) {
	server := redistest.Start(t)
	proxy := faultproxy.Start(t, server.Addr)
	proxy.Delay(3 * time.Millisecond)
	for _, perSecond := range []int{1500, 3000} {
		// A machine that is busy for a moment disturbs either load, so there are some tries.
		var missing, most int
		for try := 0; try == 0 || try < 4 && missing > most; try++ {
			var loads [2]*mixedLoad
			for i, settling := range []bool{false, true} {
				client := server.Client(t, func(o *redis.Options) { o.Addr = proxy.Addr })
				limiter := runtime.New(runtime.NewRedisStore(client), quiet, closed)
				steadyLoad(t, limiter, 500, 200*time.Millisecond, settling) // makes connections
				loads[i] = steadyLoad(t, limiter, perSecond, 2*time.Second, settling)
				t.Logf("%d calls a second, settling %t: %d of %d undecided, %d settlements lost, p99 %v",
					perSecond, settling, loads[i].undecided, len(loads[i].took), loads[i].lost, loads[i].p99())
			}
			missing, most = max(loads[1].undecided, loads[1].lost), loads[0].undecided+len(loads[1].took)/200
		}
		if missing > most {
			t.Errorf("%d calls a second: %d are undecided or not settled, want at most %d", perSecond, missing, most)
		}
	}
}
