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
	rule := &runtime.Rule{Window: time.Hour, Max: 3}
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
	rule := &runtime.Rule{Window: time.Second, Max: 3}
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
	rule := &runtime.Rule{Window: time.Hour, Max: 10_000, Algorithm: runtime.SlidingLog}
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
