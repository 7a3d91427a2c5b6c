package runtime_test

import (
	"context"
	"fmt"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
)

// manyKeys returns overrides of n keys.
func manyKeys(n int) keys {
	of := make(keys, n)
	for i := range n {
		pattern := fmt.Sprintf("tenant-%08d", i)
		if i%2 == 0 {
			pattern += ":*"
		}
		of[pattern] = runtime.KeyOverride{Max: new(int64(i%1000 + 1))}
	}
	return of
}

// The memory of 100,000 keys is within 32 MiB, with the map of the source that
// says so. So is the limiter's own where each key has another max and window.
func TestOverrideKeysMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a second")
	}
	const n, most = 100_000, 32 << 20
	worst := func() keys {
		of := make(keys, n)
		for i := range n {
			window := time.Hour + time.Duration(i)*time.Millisecond
			of[fmt.Sprintf("tenant-%08d:*", i)] = runtime.KeyOverride{Max: new(int64(i)), Window: &window}
		}
		return of
	}
	for name, make := range map[string]func() keys{"as usual": func() keys { return manyKeys(n) }, "all different": worst} {
		before := heap()
		source := new(board)
		source.set(one(runtime.Override{Keys: make()}), nil)
		with := heap() - before
		limiter := runtime.New(runtime.NewMemoryStore(), quiet, runtime.WithOverrides(source, time.Hour))
		rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 4}
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) { // New waits for a moment only
			d, err := limiter.Peek(context.Background(), rule.Limit(runtime.NewKey().AddString("tenant-00000006").AddInt(1)))
			if err != nil || time.Now().After(deadline) {
				t.Fatalf("%+v, %v", d, err)
			}
			if d.Limit != 4 {
				break
			}
		}
		held := heap() - before
		t.Logf("%s: %d bytes, of which the source's map %d", name, held, with)
		if name == "all different" {
			held -= with
		}
		if held > most {
			t.Errorf("%s: %d bytes are held, want at most %d", name, held, most)
		}
		goruntime.KeepAlive(source)
		if err := limiter.Close(); err != nil {
			t.Error(err)
		}
	}
}

// heap returns how many bytes are in use once all garbage is gone.
func heap() int64 {
	var m goruntime.MemStats
	least := int64(1) << 62
	for range 3 { // finalizers and pools take two turns
		goruntime.GC()
		goruntime.ReadMemStats(&m)
		least = min(least, int64(m.HeapAlloc))
	}
	return least
}

// A call allocates nothing more where its rule has overrides of keys.
func TestOverrideKeysAllocate(t *testing.T) {
	source := new(board)
	source.set(one(runtime.Override{Keys: manyKeys(1000)}), nil)
	limiter := runtime.New(runtime.NewMemoryStore(), quiet, runtime.WithOverrides(source, time.Hour))
	defer limiter.Close()
	rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 4, Algorithm: runtime.TokenBucket}
	for _, tenant := range []string{"tenant-00000005", "tenant-00000006", "someone"} {
		limit := rule.Limit(runtime.NewKey().AddString(tenant).AddInt(7))
		if n := fewestAllocs(func() { _, _ = limiter.Peek(context.Background(), limit) }); n != 0 {
			t.Errorf("%s: %v allocations", tenant, n)
		}
	}
}
