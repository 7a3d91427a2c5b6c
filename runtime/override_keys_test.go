package runtime_test

import (
	"fmt"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// The pattern of a key is in force for that key and for no other, whatever bytes it has.
func TestKeyPattern(t *testing.T) {
	t.Parallel()
	r := &runtime.Rule{Name: "r", Window: time.Minute, Max: 5}
	for _, text := range []string{"a", "a*", "*", "", "a%b:c", "\x00\xff", "\xff*", "键", "{x}", strings.Repeat("long", 100)} {
		pattern := key(text).Pattern()
		limiter := inMemory(overridden(overridesOf(rule.Override{Keys: keys{pattern: maximum(7)}})))
		for other, want := range map[string]int64{text: 7, text + "x": 5, "x" + text: 5} {
			wantLeft(t, limiter, r.Limit(key(other)), want)
		}
		ok(t, limiter.Close())
	}
}

// The memory of 100,000 keys is within 32 MiB, with the map of the source that
// says so. So is the limiter's own where each key has another max and window.
func TestOverrideKeysMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a second")
	}
	const n, most = 100_000, 32 << 20
	start := heap()
	for name, override := range map[string]func(i int) (string, rule.KeyOverride){
		"as usual": func(i int) (string, rule.KeyOverride) {
			return fmt.Sprintf("tenant-%08d%s", i, []string{":*", ""}[i%2]), maximum(int64(i%1000 + 1))
		},
		"all different": func(i int) (string, rule.KeyOverride) {
			return fmt.Sprintf("tenant-%08d:*", i), rule.KeyOverride{Max: new(int64(i)), Window: new(time.Hour + time.Duration(i)*time.Millisecond)}
		},
	} {
		before, all := heap(), make(keys, n)
		for i := range n {
			key, o := override(i)
			all[key] = o
		}
		with := heap() - before
		limiter := inMemory(overridden(overridesOf(rule.Override{Keys: all})))
		limit := perHour(4).Limit(runtime.NewKey().AddString("tenant-00000006").AddInt(1))
		eventually(t, "overrides hold", func() bool { return left(t, limiter, limit) != 4 }) // New waits for a moment only
		held := heap() - before
		t.Logf("%s: %d bytes, of which the source's map %d", name, held, with)
		if name == "all different" {
			held -= with
		}
		between(t, name+": bytes are held", held, 0, most)
		goruntime.KeepAlive(all)
		ok(t, limiter.Close())
		// A goroutine of the limiter may be about to end, and hold all of it: what it frees then would be taken off
		// the other case.
		eventually(t, name+": a closed limiter is freed", func() bool { return heap() < start+1<<20 })
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
