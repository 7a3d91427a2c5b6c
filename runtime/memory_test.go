package runtime_test

import (
	"context"
	"errors"
	goruntime "runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
)

// TestMemoryStoreIsBounded sends ten times more callers than it has room for.
func TestMemoryStoreIsBounded(t *testing.T) {
	t.Parallel()
	const most = 640
	store := runtime.NewMemoryStore(runtime.WithMaxKeys(most))
	limiter := runtime.New(store, quiet)
	rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 3}
	hot := rule.Limit(key("hot")).WithCost(1)
	limited := 0
	for i := range 10 * most {
		if _, err := limiter.Take(context.Background(), rule.Limit(runtime.NewKey().AddInt(int64(i)))); err != nil {
			t.Fatalf("a new caller: %v", err)
		}
		if _, err := limiter.Take(context.Background(), hot); errors.Is(err, runtime.ErrLimited) {
			limited++
		}
		if n := store.Keys(); n > most {
			t.Fatalf("%d keys after %d callers, want at most %d", n, i, most)
		}
	}
	if n := store.Keys(); n < most/2 {
		t.Errorf("%d keys, want it about full with %d", n, most)
	}
	if limited < 10*most/2 {
		t.Errorf("a hot caller was limited %d times of %d: the store does not limit at its cap", limited, 10*most)
	}
}

// TestMemoryStoreDropsTheDead keeps a store from filling with callers that are
// long gone.
func TestMemoryStoreDropsTheDead(t *testing.T) {
	t.Parallel()
	var now atomic.Int64
	now.Store(century.UnixMicro())
	store := runtime.NewMemoryStore(runtime.WithMaxKeys(64_000))
	store.SetClock(now.Load)
	limiter := runtime.New(store, quiet)
	rule := &runtime.Rule{Name: "r", Window: time.Second, Max: 3}
	for i := range 100_000 {
		now.Add(1_000) // a thousand callers a second, each of them once
		if _, err := limiter.Take(context.Background(), rule.Limit(runtime.NewKey().AddInt(int64(i)))); err != nil {
			t.Fatal(err)
		}
	}
	if n := store.Keys(); n > 10_000 {
		t.Errorf("%d keys, of which about 1,000 mean something", n)
	}
}

func TestMemoryStoreMemory(t *testing.T) {
	store := runtime.NewMemoryStore()
	limiter := runtime.New(store, quiet)
	rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 10_000, Algorithm: runtime.SlidingLog}
	heap := func() int64 {
		var m goruntime.MemStats
		goruntime.GC()
		goruntime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	limit := rule.Limit(key("k"))
	before := heap()
	for range 10_000 {
		if _, err := limiter.Take(context.Background(), limit); err != nil {
			t.Fatal(err)
		}
	}
	perEvent := float64(heap()-before) / 10_000
	t.Logf("%.1f bytes an event", perEvent)
	if perEvent > 24 {
		t.Errorf("%.1f bytes an event, want at most 24", perEvent)
	}
	goruntime.KeepAlive(store)
}

// TestMemoryStoreForgets has a clock step back after an operation found a key
// forgotten. It stays so, since Redis has dropped it.
func TestMemoryStoreForgets(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, rule := range modelRules() {
		charges := func(cost int64) []runtime.Charge {
			return []runtime.Charge{{Rule: rule, Key: []byte("k"), Max: 5, Cost: cost, Wait: rule.Wait}}
		}
		peek := func(s runtime.Store) runtime.Result {
			calls := []runtime.Call{{Charges: charges(1)}}
			if err := errors.Join(s.Peek(ctx, calls), calls[0].Err); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return calls[0].Charges[0].Result
		}
		for way, find := range map[string]func(runtime.Store){
			"peek": func(s runtime.Store) { peek(s) },
			"refund": func(s runtime.Store) {
				if err := s.Refund(ctx, charges(1)); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			},
		} {
			now := century.UnixMicro()
			store := runtime.NewMemoryStore()
			store.SetClock(func() int64 { return now })
			whole := peek(store)
			if err := store.Take(ctx, []runtime.Call{{Charges: charges(5)}}); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if peek(store) == whole {
				t.Fatalf("%s: nothing was charged", name)
			}
			now += 10 * rule.Window.Microseconds()
			find(store)
			now -= 10 * rule.Window.Microseconds()
			if got := peek(store); got != whole {
				t.Errorf("%s: after a %s found the key forgotten it is back: %+v, want %+v", name, way, got, whole)
			}
		}
	}
}
