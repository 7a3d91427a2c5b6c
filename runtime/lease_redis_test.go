package runtime_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/runtime"
)

// shares has processes call for some windows, each as often as its load says, and
// returns how many calls of each were admitted. A load of 1 is the whole limit.
func shares(rule *runtime.Rule, loads []float64, windows int) (out []int64) {
	const callers = 10
	store := runtime.NewMemoryStore()
	admitted := make([]atomic.Int64, len(loads))
	end := time.Now().Add(time.Duration(windows) * rule.Window)
	delay := func(int) func() time.Duration { return func() time.Duration { return 200 * time.Microsecond } }
	eachCaller(store, new(sync.Map), len(loads), callers, delay, func(limiter *runtime.Limiter, p, c int) {
		r := rand.New(rand.NewPCG(uint64(p), uint64(c)))
		for time.Now().Before(end) {
			if _, err := limiter.Take(context.Background(), rule.Limit(nil)); err == nil {
				admitted[p].Add(1)
			}
			time.Sleep(time.Duration(r.ExpFloat64() * callers / loads[p] / float64(rule.Max) * float64(rule.Window)))
		}
	})
	for i := range admitted {
		out = append(out, admitted[i].Load())
	}
	return out
}

// Processes share a limit as they do without leases: in proportion to their calls if
// it is exceeded, and those with few calls do not starve beside one with many. All of
// the limit is used but for the part that the lease is of its window.
func TestLeaseShares(t *testing.T) {
	t.Parallel()
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
					windows := effort.Choose(3, 30)
					rule := rule
					rule.Name, rule.Window, rule.Max = "r", time.Second, 1000
					plain := rule
					rule.Lease = rule.Window / part
					var with, without []int64
					synctest.Test(t, func(*testing.T) { with = shares(&rule, loads, windows) })
					synctest.Test(t, func(*testing.T) { without = shares(&plain, loads, windows) })
					t.Logf("with leases %v, without %v", with, without)
					sum, plainSum := int64(0), int64(0)
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
