package redis

import (
	"context"
	"fmt"
	"slices"
	"strings"
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
	*ledger
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
		script.Err, script.Numbers = nil, append([]int64{1}, make([]int64, 2**script.Args[2].(*int64))...)
		if strings.HasSuffix(*script.Args[3+*script.Args[2].(*int64)].(*string), "settle") {
			script.Numbers = script.Numbers[:1]
		}
	}
}

// TestHeavy has callers call at any cost, and give that back, beside others whose calls cost 1: each
// of these is decided soon, and Redis is as busy as it was.
func TestHeavy(t *testing.T) {
	for _, away := range []time.Duration{100 * time.Microsecond, 20 * time.Millisecond} {
		for _, cost := range effort.Choose([]int64{30, 250}, []int64{2, 10, 13, 14, 30, 100, 250, 2000}) {
			for _, heavy := range effort.Choose([]int{200}, []int{1, 3, 32, 200, 2000}) {
				if heavy > 32 && cost < 15 || heavy > 200 && away > time.Millisecond {
					continue // so many of any calls take longer, and have all batches under way
				}
				for _, back := range []bool{false, true} {
					synctest.Test(t, func(t *testing.T) { judgeHeavy(t, away, cost, heavy, back) })
				}
			}
		}
	}
}

func judgeHeavy(t *testing.T, away time.Duration, cost int64, heavy int, back bool) {
	waiters = newWaiters()
	s := &worker{ledger: &ledger{punctual: true}, away: away, one: make(chan struct{}, 1)}
	s.one <- struct{}{}
	b := New(s, quiet(t)).only
	s.work = func(ctx context.Context) time.Duration {
		b.mu.Lock()
		defer b.mu.Unlock()
		work := int64(0)
		for _, batch := range b.batches {
			for _, w := range batch.waiters {
				if batch.ctx == ctx {
					work += w.work
				}
			}
		}
		return time.Duration(work) * time.Microsecond / 4
	}
	const lasts = 300 * time.Millisecond
	begin := time.Now()
	charge := func(key string, cost int64) terms.Charge {
		return terms.Charge{Terms: terms.Terms{Algorithm: algorithm.LogZSet, Window: window, Max: 1e6}, Key: []byte(key), Cost: cost}
	}
	take := func(key string, cost int64) error {
		c := charge(key, cost)
		w := waiterOf(script.Take, 0, []terms.Call{{Charges: []terms.Charge{c}}}, c.Work(), clock.Now())
		err := b.Do(t.Context(), w)
		if err == nil {
			w.Free()
		}
		return err
	}
	var callers, returns sync.WaitGroup
	for i := range heavy {
		callers.Go(func() {
			key := fmt.Sprint("heavy", i)
			for time.Since(begin) < lasts {
				if take(key, cost) == nil && back {
					c := charge(key, -cost)
					returns.Add(1)
					if !b.Return(&c, 0, noted{&returns}) {
						returns.Done()
					}
				}
			}
		})
	}
	var longest [8]time.Duration
	for i := range longest {
		callers.Go(func() {
			for time.Since(begin) < lasts {
				began := time.Now()
				if err := take(fmt.Sprint(i), 1); err != nil {
					t.Errorf("a call beside %d that cost %d: %v", heavy, cost, err)
				}
				longest[i] = max(longest[i], time.Since(began))
				time.Sleep(time.Millisecond)
			}
		})
	}
	callers.Wait()
	returns.Wait()
	use := float64(s.busy) / float64(time.Since(begin))
	time.Sleep(time.Second) // for what nobody waits for any more
	took := slices.Max(longest[:]) - away
	t.Logf("%v away, %d callers at cost %d, given back %v: at most %v, Redis busy %.0f %%", away, heavy, cost, back, took, 100*use)
	if took > 10*time.Millisecond {
		t.Errorf("a call beside %d that cost %d took %v more than Redis is away", heavy, cost, took)
	}
}
