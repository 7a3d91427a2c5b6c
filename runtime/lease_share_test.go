package runtime_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
)

// shares has processes call for some windows, each as often as its load says, and
// returns how many calls of each were admitted. A load of 1 is the whole limit.
func shares(rule *runtime.Rule, loads []float64, windows int) []int {
	store := runtime.SharedMemory{MemoryStore: runtime.NewMemoryStore()}
	admitted := make([]int, len(loads))
	end := time.Now().Add(time.Duration(windows) * rule.Window)
	var all sync.WaitGroup
	for p, load := range loads {
		var windows sync.Map
		limiter := runtime.New(&distantStore{SharedMemory: store, windows: &windows, delay: func() time.Duration { return 200 * time.Microsecond }}, quiet)
		const callers = 10
		var mu sync.Mutex
		var calls sync.WaitGroup
		for c := range callers {
			r := rand.New(rand.NewPCG(uint64(p), uint64(c)))
			calls.Go(func() {
				for time.Now().Before(end) {
					if _, err := limiter.Take(context.Background(), rule.Limit(nil)); err == nil {
						mu.Lock()
						admitted[p]++
						mu.Unlock()
					}
					time.Sleep(time.Duration(r.ExpFloat64() * callers / load / float64(rule.Max) * float64(rule.Window)))
				}
			})
		}
		all.Go(func() {
			calls.Wait()
			_ = limiter.Close()
		})
	}
	all.Wait()
	return admitted
}

// Processes share a limit as they do without leases: in proportion to their calls if
// it is exceeded, and those with few calls do not starve beside one with many. All of
// the limit is used but for the part that the lease is of its window.
func TestLeaseShares(t *testing.T) {
	for load, loads := range map[string][]float64{
		"equal":         {0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3},
		"nearly enough": {0.11, 0.11, 0.11, 0.11, 0.11, 0.11, 0.11, 0.11},
		"one is greedy": {3, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05},
		"two are":       {1, 0.02, 1, 0.02, 0.1, 0.1, 0.1, 0.1},
	} {
		for _, name := range []string{"log", "counter", "token bucket"} {
			rule := leasedRules[name]
			for _, part := range []time.Duration{2, 20} {
				t.Run(fmt.Sprint(load, " ", name, " ", time.Second/part), func(t *testing.T) {
					windows := 3
					if os.Getenv("RATEGEN_TEST_FULL") != "" {
						windows = 30
					}
					rule := rule
					rule.Name, rule.Window, rule.Max = "r", time.Second, 1000
					plain := rule
					rule.Lease = rule.Window / part
					var with, without []int
					synctest.Test(t, func(*testing.T) { with = shares(&rule, loads, windows) })
					synctest.Test(t, func(*testing.T) { without = shares(&plain, loads, windows) })
					t.Logf("with leases %v, without %v", with, without)
					sum, plainSum := 0, 0
					for p := range loads {
						sum, plainSum = sum+with[p], plainSum+without[p]
						if float64(with[p]) < 0.5*float64(without[p]) {
							t.Errorf("process %d got %d, without leases %d", p, with[p], without[p])
						}
					}
					if least := 0.9 * float64(part) / float64(part+1); float64(sum) < least*float64(plainSum) {
						t.Errorf("all got %d, without leases %d", sum, plainSum)
					}
				})
			}
		}
	}
}
