package runtime_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/runtime"
)

// Processes whose calls wait for the same permits take turns, however many calls each has: the first
// one has ten times as many. Each gets half of an even share of any hundred turns at least, and none
// waits longer than twice its turn and 20 ms for each process. Hardly a permit stands unused while
// calls wait that take 50 ms and more. Run with -v it prints a table. A full run has the ends of each
// range and points between them. All of it takes minutes, see [effort.All].
func TestTurns(t *testing.T) {
	t.Parallel()
	t.Log("call, permits, processes: permits in use, least part of an even share, longest wait (bound)")
	const ms = time.Millisecond
	lengths := effort.Choose([]time.Duration{ms, 50 * ms}, []time.Duration{ms, 10 * ms, 50 * ms, time.Second})
	permits, evens := effort.Choose([]int{1, 3, 10}, []int{1, 3, 10, 100}), []bool{false}
	if effort.All() {
		lengths, permits, evens = append(lengths, 100*ms), append(permits, 2), []bool{true, false}
	}
	for _, length := range lengths {
		for _, max := range permits {
			for _, n := range effort.Choose([]int{1, 3, 16}, []int{1, 2, 3, 16}) {
				for _, even := range evens {
					t.Run(fmt.Sprintf("%v %d permits %d processes even %v", length, max, n, even), func(t *testing.T) {
						t.Parallel()
						synctest.Test(t, func(t *testing.T) { judgeTurns(t, length, max, n, even) })
					})
				}
			}
		}
	}
}

// A turn is that a call of a process goes on.
type turn struct {
	process int
	at      time.Duration
}

func judgeTurns(t *testing.T, length time.Duration, permits, n int, even bool) {
	// A process that has all permits, and whose calls end at the same time, leaves one at a time.
	warm := min(time.Second, 300*length) + length*time.Duration(permits/2)
	// Shorter calls than 10 ms take turns of that, of two calls at least; and all calls that began
	// together end together.
	window := max(100*int(max(1, 20*time.Millisecond/length)), 4*permits)
	rounds := 2
	if effort.All() {
		rounds = 6
	}
	lasts := length * time.Duration(max(rounds*window/permits, 16))
	ctx, end := context.WithCancel(context.Background())
	var mu sync.Mutex
	var turns []turn
	var busy time.Duration
	begin, random := time.Now(), rand.New(rand.NewPCG(1, 2))
	store := runtime.NewMemoryStore()
	rule := waitingRule(int64(permits), time.Hour)
	var callers sync.WaitGroup
	for i := range n {
		limiter := runtime.New(store, quiet)
		many := permits + 2
		if i == 0 {
			many *= 10
		}
		for range many {
			callers.Go(func() {
				for {
					d, err := limiter.Take(ctx, rule.Limit(nil))
					if err != nil {
						return
					}
					mu.Lock()
					took, at := length, time.Since(begin)
					if !even {
						took = length/2 + time.Duration(random.Int64N(int64(length)))
					}
					if at >= warm && at < warm+lasts {
						turns = append(turns, turn{i, at})
					}
					busy += max(0, min(at+took, warm+lasts)-max(at, warm))
					mu.Unlock()
					time.Sleep(took)
					_ = limiter.Settle(context.WithoutCancel(ctx), d, 0)
				}
			})
		}
	}
	time.Sleep(warm + lasts)
	end()
	callers.Wait()

	least, longest := 1.0, time.Duration(0)
	counts, last := make([]int, n), slices.Repeat([]time.Duration{warm + length}, n)
	for i, turn := range turns {
		longest, last[turn.process] = max(longest, turn.at-last[turn.process]), turn.at
		counts[turn.process]++
		if i >= window {
			counts[turns[i-window].process]--
		}
		if i >= window-1 {
			least = min(least, float64(slices.Min(counts)*n)/float64(window))
		}
	}
	use := float64(busy) / float64(lasts) / float64(permits)
	bound := max(length*3/2, 2*time.Duration(n)*length/time.Duration(permits)+time.Duration(n)*20*time.Millisecond)
	t.Logf("%v, %d, %d: %.0f %%, %.0f %%, %v (%v)", length, permits, n, 100*use, 100*least, longest.Round(time.Millisecond), bound.Round(time.Millisecond))
	if least < 0.5 || longest > bound || len(turns) < window || length >= 50*time.Millisecond && use < 0.95 || n == 1 && use < 0.99 {
		t.Error("permits are not shared as promised")
	}
}
