package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/runtime"
)

// besideQueue are limits of 20 calls in three seconds, for which a call waits or does not.
func besideQueue(wait time.Duration) (rules []*runtime.Rule) {
	for _, r := range []runtime.Rule{
		{Algorithm: runtime.SlidingLog}, {Algorithm: runtime.SlidingLog, Storage: runtime.StoragePacked}, {Algorithm: runtime.SlidingCounter},
		{Algorithm: runtime.FixedWindow}, {Algorithm: runtime.FixedWindow, Reserve: time.Second}, {Algorithm: runtime.TokenBucket, Burst: 1},
	} {
		r.Name, r.Prefix, r.Window, r.Max, r.Wait = "beside", "beside:", 3*time.Second, 20, wait
		rules = append(rules, &r)
	}
	return rules
}

// A limit beside a queue counts calls that go on: no window of the times at which they do has more
// than max, and turns stay as far apart as the queue says.
func TestWindowsBesideQueue(t *testing.T) {
	t.Parallel()
	for _, wait := range []time.Duration{0, time.Minute} {
		for _, rule := range besideQueue(wait) {
			t.Run(fmt.Sprint(rule.Algorithm, rule.Storage, " reserve ", rule.Reserve, " wait ", wait), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					limiter := inMemory()
					defer limiter.Close()
					queue := (&runtime.Rule{Name: "queue", Prefix: "queue:", Algorithm: runtime.LeakyBucket, Window: time.Second, Max: 20, Wait: time.Minute}).Limit(nil)
					done, refused := runsOf(t, limiter, 60, 0, queue, rule.Limit(nil))
					if len(done) < 20 && rule.Burst != 1 || wait > 0 && (len(done) < 60 || refused > 0) {
						t.Fatalf("%d went on, %d were refused", len(done), refused)
					}
					span := rule.Window
					if rule.Algorithm == runtime.SlidingCounter {
						span += rule.Window / 60 // its buckets begin somewhere
					}
					for i := range done {
						if i > 0 && done[i]-done[i-1] < 50*time.Millisecond-time.Microsecond {
							t.Errorf("call %d goes on %v after the one before", i, done[i]-done[i-1])
						}
						if rule.Algorithm == runtime.FixedWindow && i >= 40 && done[i]-done[i-40] < rule.Window || // twice the max across an edge
							rule.Algorithm != runtime.FixedWindow && i >= 20 && done[i]-done[i-20] < rule.Window-time.Microsecond {
							t.Errorf("call %d goes on at %v, and one of those before at %v", i, done[i], done[max(0, i-20)])
						}
					}
					if most := time.Duration(len(done)) * span / 20; done[len(done)-1] > most+time.Second {
						t.Errorf("the last of %d goes on at %v", len(done), done[len(done)-1])
					}
				})
			})
		}
	}
}

// runsOf makes calls at once, and returns in order when they went on, and how many were refused. Each
// runs for a time.
func runsOf(t *testing.T, limiter *runtime.Limiter, n int, hold time.Duration, limits ...runtime.Limit) (runs []time.Duration, refused int) {
	t.Helper()
	var mu sync.Mutex
	begin := time.Now()
	concurrently(n, func(i int) {
		d, err := limiter.Take(context.Background(), limits...)
		mu.Lock()
		if err == nil {
			runs = append(runs, time.Since(begin))
		} else if !errors.Is(err, runtime.ErrLimited) {
			t.Error(err)
		} else {
			refused++
		}
		mu.Unlock()
		if err == nil {
			time.Sleep(hold)
			limiter.SettleLater(context.Background(), d)
		}
	})
	slices.Sort(runs)
	return runs, refused
}

// A permit beside a queue is held by calls that run: those in line keep it from nobody, and who
// finds none at its turn waits for one and goes on later.
func TestPermitsBesideQueue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		limiter := inMemory()
		defer limiter.Close()
		pool := waitingRule(4, time.Minute).Limit(nil)
		tenant := func(name string) runtime.Limit {
			return (&runtime.Rule{Name: "queue", Prefix: "queue:", Algorithm: runtime.LeakyBucket, Window: time.Second, Max: 2, Wait: time.Minute}).Limit(key(name))
		}
		var a []time.Duration
		var all sync.WaitGroup
		all.Go(func() { a, _ = runsOf(t, limiter, 20, 100*time.Millisecond, tenant("a"), pool) })
		synctest.Wait()
		equal(t, "tenant b waited", elapsed(func() { settled(t, limiter, taken(t, limiter, tenant("b"), pool)) }), 0)
		time.Sleep(2 * time.Second)
		between(t, "permits of calls that run", bridge.LimiterOf(limiter).Permits()["r"], 0, 1)
		held := taken(t, limiter, pool.WithCost(4))
		time.Sleep(3 * time.Second) // the turns of six calls
		settled(t, limiter, held)
		all.Wait()
		equal(t, "calls of tenant a", len(a), 20)
		equal(t, "the last one's time", a[19], 9500*time.Millisecond)
		equal(t, "calls in lines", limiter.Lines(), 0)
	})
}

// testQueueAndWindow has calls go on in a queue beside a window, and wants them to count when they
// do: one after the other, and many at one moment.
func testQueueAndWindow(t *testing.T, replica replicas) {
	limiter := replica()
	rules := besideQueue(time.Minute)
	concurrently(2*len(rules), func(i int) {
		most := []int64{100, 50_000}[i%2]
		queue := (&runtime.Rule{Name: "queue", Prefix: "queue:", Algorithm: runtime.LeakyBucket, Window: time.Second, Max: most, Wait: time.Minute}).Limit(key(fmt.Sprint(i)))
		window := *rules[i/2]
		window.Prefix, window.Max, window.Window = fmt.Sprint(i, ":"), 5, time.Second
		runs, refused := runsOf(t, limiter, 11, 0, queue, window.Limit(key("k")))
		if refused > 0 || len(runs) != 11 || runs[10] < time.Second {
			t.Errorf("%v: %d refused, the calls went on at %v", window.Algorithm, refused, runs)
		}
	})
}

// Calls leave a line of 10 a second in any order. The next one waits no longer than those that are
// still in line need: it takes the earliest place that was left, and the others keep their turns.
func TestLeftPlaces(t *testing.T) {
	const calls, apart = 60, 100 * time.Millisecond
	leave := map[string][]int{ // who stays, by place; all others leave
		"all": {}, "all but the last": {calls - 1}, "all but the first": {0}, "all but one": {30},
		"every other one": {1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31, 33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59},
		"two blocks":      {10, 11, 12, 40, 41},
	}
	orders := map[string]func(i int) int{"the first first": func(i int) int { return i }, "the last first": func(i int) int { return calls - 1 - i }, "mixed": func(i int) int { return i * 37 % calls }}
	tests := map[string]func(*testing.T){}
	for who, stay := range leave {
		for how, order := range orders {
			tests[how+", "+who] = func(t *testing.T) {
				limiter, begin := inMemory(), time.Now()
				limit := (&runtime.Rule{Name: "r", Algorithm: runtime.LeakyBucket, Window: time.Second, Max: 10, Wait: time.Hour}).Limit(nil)
				taken(t, limiter, limit)
				var turns [calls]time.Duration
				var cancel [calls]context.CancelFunc
				var ended sync.WaitGroup
				for i := range calls {
					ctx, end := context.WithCancel(t.Context())
					cancel[i] = end
					ended.Go(func() {
						if _, err := limiter.Take(ctx, limit); err == nil {
							turns[i] = time.Since(begin)
						}
					})
					synctest.Wait()
				}
				for i := range calls {
					if n := order(i); !slices.Contains(stay, n) {
						cancel[n]()
						synctest.Wait()
					}
				}
				var next []time.Duration // turns of calls that come now, one after the other
				var mu sync.Mutex
				for range calls {
					ended.Go(func() {
						taken(t, limiter, limit)
						mu.Lock()
						defer mu.Unlock()
						next = append(next, time.Since(begin))
					})
					synctest.Wait()
				}
				ended.Wait()
				all := slices.Clone(next)
				for _, i := range stay {
					equal(t, fmt.Sprint("turn of call ", i), turns[i], time.Duration(i+1)*apart)
					all = append(all, turns[i])
				}
				slices.Sort(all)
				for i, at := range all { // no place is left out, and none is taken twice
					equal(t, fmt.Sprint("the turn number ", i), at, time.Duration(i+1)*apart)
				}
				equal(t, "new calls in order", slices.IsSorted(next), true)
			}
		}
	}
	eachCase(t, tests, func(t *testing.T, test func(*testing.T)) { test(t) })
}
