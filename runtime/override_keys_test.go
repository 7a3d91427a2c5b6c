package runtime_test

import (
	"context"
	"fmt"
	goruntime "runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// The factor of an adaptive rule and a process's share apply to a key's numbers, also
// where the limit is one of permits.
func TestOverrideKeysAreScaled(t *testing.T) {
	t.Parallel()
	override := overridden(overridesOf(rule.Override{Keys: keys{"big*": maximum(40), "small": maximum(4), "blocked": maximum(0)}}))
	store := runtime.NewRedisStore(redistest.Start(t).Client(t), patient)
	for name, test := range map[string]struct {
		store    runtime.Store
		rule     runtime.Rule
		replicas int
		part     int // of the whole, in percent
	}{
		"scaled":               {runtime.NewMemoryStore(), runtime.Rule{Adaptive: always(0.5)}, 1, 50},
		"a log of a process":   {nil, runtime.Rule{Fail: runtime.FailLocal}, 2, 50},
		"a bucket of it":       {nil, runtime.Rule{Fail: runtime.FailLocal, Algorithm: runtime.TokenBucket}, 2, 50},
		"permits":              {runtime.NewMemoryStore(), runtime.Rule{Algorithm: runtime.Concurrency}, 1, 100},
		"permits on Redis":     {store, runtime.Rule{Algorithm: runtime.Concurrency}, 1, 100},
		"permits of a process": {nil, runtime.Rule{Fail: runtime.FailLocal, Algorithm: runtime.Concurrency}, 2, 50},
	} {
		r := test.rule
		r.Name, r.Window, r.Max = "r", time.Hour, 10
		limiter := runtime.New(test.store, quiet, override, runtime.WithReplicas(test.replicas))
		limiter.Register(&r)
		eventually(t, "overrides hold", func() bool { return limiter.Rules()[0].Keys == 3 }) // New waits for a moment only
		if r.Adaptive != nil {
			adapt(t, limiter, &r, 0.5)
		}
		for id, whole := range map[string]int{"big": 40, "bigger": 40, "small": 4, "other": 10, "blocked": 0} {
			equal(t, fmt.Sprintf("%s, %s: admitted", name, id), passing(t, limiter, r.Limit(key(id)), 50), whole*test.part/100)
		}
		ok(t, limiter.Close())
	}
}

// Overrides of keys that are as they were are no news, in whatever map they come.
func TestOverrideKeysUnchanged(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var seen recorder[observe.OverrideEvent]
		n := int64(0)
		limiter := inMemory(runtime.WithOverrides(runtime.OverrideFunc(func(context.Context) (runtime.Overrides, error) {
			n++
			return overridesOf(rule.Override{Keys: keys{
				"a": maximum(1 + n/10), "b*": {Enabled: new(n < 20)}, fmt.Sprint("c", n/30): {Mode: new(runtime.ModeShadow)},
			}}), nil
		}), time.Second), observing(observe.Observer{Override: seen.add}))
		defer limiter.Close()
		time.Sleep(40 * time.Second)
		synctest.Wait()
		// The 10th, 20th, 30th and 40th differ, and the 20th and 30th in two ways.
		equal(t, "events", len(seen.all()), 5)
	})
}

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

// Overrides and the kill switch hold for the next call, whatever is leased.
func TestLeaseOverrides(t *testing.T) {
	t.Parallel()
	source := new(board)
	testLease(t, func(r *runtime.Rule) { r.Window, r.Lease = time.Minute, 20*time.Second }, func(l *leaseTest) {
		override := func(o rule.Override) {
			source.put(runtime.Overrides{Rules: map[string]rule.Override{"hot": o}})
		}
		l.fill()
		l.leased()
		override(rule.Override{Max: new(int64(9_000))})
		equal(l, "limit", takenBy(l, l.limiter, rule.SourceStore, l.limit).Limit, 9_000)
		override(rule.Override{Max: new(int64(0))})
		refusedAs(l, l.limiter, runtime.ErrLimited, l.limit)
		override(rule.Override{Max: new(int64(8_000))})
		l.fill()
		equal(l, "limit", l.leased().Limit, 8_000)
		override(rule.Override{Window: new(20 * time.Second)}) // as long as the lease
		for range 50 {
			takenBy(l, l.limiter, rule.SourceStore, l.limit)
		}
		override(rule.Override{Enabled: new(false)})
		takenBy(l, l.limiter, rule.SourceNone, l.limit)
	}, runtime.WithOverrides(source, time.Second))
}
