package runtime_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// A mortalStore is the store of a process: when the process is dead it does nothing more.
type mortalStore struct {
	*runtime.MemoryStore
	dead atomic.Bool
}

var errDead = errors.New("the process is dead")

func (s *mortalStore) Take(ctx context.Context, calls []terms.Call) error {
	if s.dead.Load() {
		return errDead
	}
	return s.MemoryStore.Take(ctx, calls)
}

func (s *mortalStore) Renew(ctx context.Context, calls []terms.Call) error {
	if s.dead.Load() {
		return errDead
	}
	return s.MemoryStore.Renew(ctx, calls)
}

func (s *mortalStore) Settle(ctx context.Context, charges []terms.Charge) error {
	if s.dead.Load() {
		return errDead
	}
	return s.MemoryStore.Settle(ctx, charges)
}

// Eight processes hold permits for random times, some of them longer than the window, and
// some die in the middle of calls. Never are more permits held than max, and those of the
// dead are free within a window. Without renewals the same calls hold too many, so the
// check would see it. How renewed permits count and lapse on Redis, the suite for stores
// and TestModel say.
func TestPermitProcesses(t *testing.T) {
	t.Parallel()
	const max, processes, window = 6, 8, 2 * time.Second
	rule := permitRule(max)
	rule.Window, rule.Wait = window, window/4
	limit := rule.Limit(key("k"))
	run := func(t *testing.T, seed uint64, renew bool) (most int64) {
		memory := runtime.NewMemoryStore()
		var mu sync.Mutex
		var held int64
		hold := func(n int64) {
			mu.Lock()
			defer mu.Unlock()
			held += n
			if held > most {
				most = held
			}
		}
		var calls sync.WaitGroup
		end := time.Now().Add(6 * window)
		for p := range uint64(processes) {
			store := &mortalStore{MemoryStore: memory}
			limiter := runtime.New(store, quiet, closed)
			if !renew {
				_ = limiter.Close()
			}
			life := make(chan struct{})
			if random := rand.New(rand.NewPCG(seed, p)); p%2 == 0 {
				time.AfterFunc(time.Duration(random.Float64()*float64(5*window)), func() {
					store.dead.Store(true)
					close(life)
				})
			}
			for caller := range uint64(3) {
				random := rand.New(rand.NewPCG(seed, p*100+caller))
				calls.Go(func() {
					for time.Now().Before(end) && !store.dead.Load() {
						limit := limit.WithCost(1 + random.Int64N(2))
						d, err := limiter.Take(context.Background(), limit)
						if err != nil {
							continue
						}
						hold(runtime.CostOf(limit))
						length := time.Duration(random.IntN(20)) * time.Millisecond
						if random.IntN(3) == 0 {
							length = time.Duration(random.Float64() * 1.6 * float64(window))
						}
						select {
						case <-time.After(length):
						case <-life:
						}
						hold(-runtime.CostOf(limit))
						if random.IntN(2) == 0 {
							_ = limiter.Settle(context.Background(), d, limit)
						} else {
							limiter.SettleLater(context.Background(), d, limit)
						}
					}
				})
			}
		}
		calls.Wait()
		time.Sleep(window)
		synctest.Wait()
		if n := left(t, runtime.New(memory, quiet), limit); renew && n != max {
			t.Errorf("seed %d: %d of %d permits are free a window after the last call", seed, n, max)
		}
		return most
	}
	full := false
	for seed := range uint64(effort.Few(20)) {
		synctest.Test(t, func(t *testing.T) {
			most := run(t, seed, true)
			if full = full || most == max; most > max {
				t.Errorf("seed %d: %d permits were held at once, want at most %d", seed, most, max)
			}
		})
		synctest.Test(t, func(t *testing.T) {
			if most := run(t, seed, false); most <= max {
				t.Errorf("seed %d: no more permits were held without renewals: the check proves nothing", seed)
			}
		})
	}
	if !full {
		t.Error("never were all permits held")
	}
}
