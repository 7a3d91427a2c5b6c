package redis

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/script"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rediswire"
)

// A worker is a server that takes as long as the work of a batch is, one batch after the other, and
// on the way there and back.
type worker struct {
	fakeClient
	away time.Duration
	work func(context.Context) time.Duration // of the batch that is sent
	one  chan struct{}                       // holds a value while none works
	busy time.Duration
}

func (s *worker) Execute(ctx context.Context, scripts []*rediswire.Script) {
	takes := s.work(ctx)
	time.Sleep(s.away / 2)
	<-s.one
	time.Sleep(takes)
	s.busy += takes
	s.one <- struct{}{}
	time.Sleep(s.away / 2)
	for _, script := range scripts {
		admit(script)
	}
}

// TestHeavy has callers call at any cost, and give that back, beside others whose calls cost 1: each
// of these is decided soon, and what keeps Redis busy is not in vain. Processes do not know of each other, so
// beside several it prints how long such calls take.
func TestHeavy(t *testing.T) {
	for _, away := range []time.Duration{100 * time.Microsecond, 20 * time.Millisecond} {
		for _, cost := range effort.Choose([]int64{30, 250}, []int64{2, 10, 13, 14, 30, 100, 250, 2000}) {
			for _, callers := range effort.Choose([]int{200}, []int{1, 3, 32, 200, 2000}) {
				if callers > 32 && cost < 15 || callers > 200 && away > time.Millisecond {
					continue // so many of any calls take longer, and have all batches under way
				}
				several := []int{1}
				if effort.Full() && callers == 200 && cost < 2000 {
					several = []int{1, 2, 4, 8}
				}
				for _, processes := range several {
					for _, back := range []bool{false, true} {
						synctest.Test(t, func(t *testing.T) { judgeHeavy(t, away, cost, callers, processes, back) })
					}
				}
			}
		}
	}
}

func judgeHeavy(t *testing.T, away time.Duration, cost int64, heavy, processes int, back bool) {
	const lasts, budget = 300 * time.Millisecond, 10 * time.Millisecond
	waiters = newWaiters()
	s := &worker{fakeClient: fakeClient{about: rediswire.About{Punctual: true, Most: 40}}, away: away, one: make(chan struct{}, 1)}
	s.one <- struct{}{}
	var batchers []*batcher
	s.work = func(ctx context.Context) time.Duration {
		work := int64(0)
		for _, b := range batchers {
			b.mu.Lock()
			for _, batch := range b.batches {
				for _, w := range batch.waiters {
					if batch.ctx == ctx {
						work += w.work
					}
				}
			}
			b.mu.Unlock()
		}
		return time.Duration(work) * time.Microsecond / 4
	}
	for range processes {
		batchers = append(batchers, New(s, quiet(t)).only)
	}
	begin := time.Now()
	charge := func(key string, cost int64) terms.Charge {
		return terms.Charge{Terms: terms.Terms{Algorithm: algorithm.LogZSet, Window: window, Max: 1e6}, Key: []byte(key), Cost: cost}
	}
	take := func(b *batcher, key string, cost int64) error {
		c := charge(key, cost)
		w := waiterOf(script.Take, 0, []terms.Call{{Charges: []terms.Charge{c}}}, c.Work(), clock.Now())
		err := b.Do(t.Context(), w)
		if err == nil {
			w.Free()
		}
		return err
	}
	var callers, returns sync.WaitGroup
	var mu sync.Mutex
	var took []time.Duration // of each cheap call
	undecided, dear := 0, 0
	for _, b := range batchers {
		for i := range heavy {
			callers.Go(func() {
				key := fmt.Sprint("heavy", i)
				for time.Since(begin) < lasts {
					if take(b, key, cost) != nil {
						continue
					}
					mu.Lock()
					dear++
					mu.Unlock()
					if back {
						c := charge(key, -cost)
						returns.Add(1)
						if !b.Return(&c, 0, noted{&returns}) {
							returns.Done()
						}
					}
				}
			})
		}
		for i := range 8 {
			callers.Go(func() {
				for time.Since(begin) < lasts {
					began := time.Now()
					err := take(b, fmt.Sprint(i), 1)
					mu.Lock()
					took = append(took, time.Since(began)-away)
					if err != nil {
						undecided++
					}
					mu.Unlock()
					time.Sleep(time.Millisecond)
				}
			})
		}
	}
	callers.Wait()
	returns.Wait()
	use := float64(s.busy) / float64(time.Since(begin))
	time.Sleep(time.Second) // for what nobody waits for any more
	slices.Sort(took)
	most := took[len(took)-1]
	c := charge("", cost)
	useful := float64(dear) * float64(c.Work()) * 0.25e-6 / lasts.Seconds()
	t.Logf("%v away, %d processes, %d callers at cost %d, given back %v: p50 %v, p99 %v, at most %v, %d of %d undecided; Redis busy %.0f %%, of that with heavy calls that are decided %.0f %%",
		away, processes, heavy, cost, back, took[len(took)/2], took[len(took)*99/100], most, undecided, len(took), 100*use, 100*useful/use)
	// How busy a distant Redis is a process learns when an answer is back.
	if processes == 1 && (most > budget+away/2 || undecided > 0) {
		t.Errorf("beside %d that cost %d a call took %v more than Redis is away, and %d were not decided", heavy, cost, most, undecided)
	}
	if use > 0.9 && useful < use/2 && !back && processes == 1 {
		t.Errorf("Redis is busy with calls whose callers have left: %d that cost %d", heavy, cost)
	}
}
