package runtime_test

import (
	"fmt"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/storetest"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rawstore"
	"github.com/rategen/rategen/runtime/rule"
)

// century is a time that no test reaches by itself, so that Redis expires
// nothing of a test that sets the clock.
var century = time.Date(2100, time.January, 1, 0, 0, 0, 123456000, time.UTC)

// TestMemoryStoreIsBounded sends ten times more callers than it has room for.
func TestMemoryStoreIsBounded(t *testing.T) {
	t.Parallel()
	const most = 640
	store, rule := runtime.NewMemoryStore(runtime.WithMaxKeys(most)), perHour(3)
	limiter, limited := runtime.New(store, quiet), 0
	for i := range 10 * most {
		taken(t, limiter, rule.Limit(runtime.NewKey().AddInt(int64(i))))
		limited += 1 - passing(t, limiter, rule.Limit(key("hot")), 1)
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

// TestMemoryIsFull has more callers come than memory is for, on a store and where this process
// decides alone. Those that are blocked stay, as long as others can go. The first count that is
// lost is told once, and the first block, with the bound and the option.
func TestMemoryIsFull(t *testing.T) {
	t.Parallel()
	const most, blocks = 6400, 640
	for option, open := range map[string]func(...runtime.Option) *runtime.Limiter{
		"runtime.WithMaxKeys": func(opts ...runtime.Option) *runtime.Limiter {
			return runtime.New(runtime.NewMemoryStore(runtime.WithMaxKeys(most)), opts...)
		},
		"runtime.WithLocalKeys": func(opts ...runtime.Option) *runtime.Limiter {
			return runtime.New(broken(), append(opts, runtime.WithLocalKeys(most), runtime.WithFailurePolicy(runtime.FailLocal))...)
		},
	} {
		var out lines
		limiter := open(out.Logger())
		told := func(blocked bool) int {
			return strings.Count(out.String(), fmt.Sprintf("code=keys_forgotten blocked=%t max_keys=%d option=%s", blocked, most, option))
		}
		rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 1, Block: time.Hour}
		of := func(i int) runtime.Limit { return rule.Limit(runtime.NewKey().AddInt(int64(i))) }
		for i := range blocks {
			taken(t, limiter, of(i))
			blockedBy(t, limiter, of(i))
		}
		equal(t, option+": told with room left", told(false)+told(true), 0)
		for i := range 10 * most { // others, each of them once
			taken(t, limiter, of(blocks+i))
		}
		for i := range blocks {
			blockedBy(t, limiter, of(i))
		}
		equal(t, option+": told of counts", told(false), 1)
		equal(t, option+": told of blocks", told(true), 0)
		for i := range 2 * most {
			taken(t, limiter, of(-1-i))
			_, _ = limiter.Take(t.Context(), of(-1-i))
		}
		equal(t, option+": told of counts again", told(false), 1)
		equal(t, option+": told of blocks", told(true), 1)
		ok(t, limiter.Close())
	}
}

// TestMemoryStoreDropsTheDead keeps a store from filling with callers that are long gone.
func TestMemoryStoreDropsTheDead(t *testing.T) {
	t.Parallel()
	now := century.UnixMicro()
	store := runtime.NewMemoryStore(runtime.WithMaxKeys(64_000))
	store.SetClock(func() int64 { return now })
	limiter := runtime.New(store, quiet)
	rule := &runtime.Rule{Name: "r", Window: time.Second, Max: 3}
	for i := range 100_000 {
		now += 1_000 // a thousand callers a second, each of them once
		taken(t, limiter, rule.Limit(runtime.NewKey().AddInt(int64(i))))
	}
	if n := store.Keys(); n > 10_000 {
		t.Errorf("%d keys, of which about 1,000 mean something", n)
	}
}

func TestMemoryStoreMemory(t *testing.T) {
	store := runtime.NewMemoryStore()
	limiter, limit := runtime.New(store, quiet), perHour(10_000).Limit(key("k"))
	before := heap()
	wantPassing(t, limiter, limit, 10_000, 10_000)
	if perEvent := float64(heap()-before) / 10_000; perEvent > 24 {
		t.Errorf("%.1f bytes an event, want at most 24", perEvent)
	}
	goruntime.KeepAlive(store)
}

// TestMemoryStoreConflict has two algorithms use one key, as TestConflict of package memstate
// does for all. The error names the second one's rule, and its call charges nothing. In shadow
// mode that is its own affair.
func TestMemoryStoreConflict(t *testing.T) {
	t.Parallel()
	log := &runtime.Rule{Name: "log", Window: time.Hour, Max: 3}
	bucket := &runtime.Rule{Name: "bucket", Window: time.Hour, Max: 3, Algorithm: runtime.TokenBucket}
	shadow := *bucket
	shadow.Mode = runtime.ModeShadow
	store := runtime.NewMemoryStore()
	must(t, store, take, single(log, "k", 1))
	both := func(second *runtime.Rule) rawstore.Call {
		return rawstore.Call{Charges: []rawstore.Charge{chargeOf(log, "other", 1), chargeOf(second, "k", 1)}}
	}
	calls := []rawstore.Call{single(bucket, "k", 1)[0], single(&shadow, "k", 1)[0], both(bucket), both(&shadow), single(log, "k", 1)[0]}
	ok(t, rawstore.Wrap(store).Take(t.Context(), calls))
	const want = `the key of rule "bucket" holds the state of another algorithm`
	for i, call := range calls[:3] {
		if call.Err == nil || call.Err.Error() != want {
			t.Errorf("call %d: got %v, want %s", i, call.Err, want)
		}
	}
	if beside := calls[3].Charges; calls[3].Err != nil || !beside[0].Allowed || beside[0].Remaining != 2 || beside[1].Err == nil {
		t.Errorf("beside a shadow: got %+v", calls[3])
	}
	if r := calls[4].Charges[0].Result; calls[4].Err != nil || !r.Allowed || r.Remaining != 1 || store.Keys() != 2 {
		t.Errorf("got %+v, %v and %d keys", r, calls[4].Err, store.Keys())
	}
}

// TestMemoryStoreAllocates counts the allocations of calls with as many limits
// as a limiter allows: none.
func TestMemoryStoreAllocates(t *testing.T) {
	for name, r := range storetest.Ways() {
		charges := make([]terms.Charge, rule.MaxLimits)
		for n := 1; n <= len(charges); n++ {
			store := runtime.NewMemoryStore()
			store.SetClock(century.UnixMicro)
			engine := rawstore.Wrap(store).Store
			for i := range charges {
				c := rawstore.Charge{Rule: r, Key: []byte{byte(i)}, Max: 3, Cost: 1}
				charges[i] = c.Engine()
			}
			calls := []terms.Call{{Charges: charges[:n]}}
			take := func() {
				_ = engine.Take(t.Context(), calls)
				_ = engine.Settle(t.Context(), calls[0].Charges)
			}
			for range 4 {
				_ = engine.Take(t.Context(), calls)
			}
			if allocs := fewestAllocs(take); allocs != 0 || calls[0].Err != nil {
				t.Errorf("%s, %d limits: %v allocations, error %v", name, n, allocs, calls[0].Err)
			}
		}
	}
}
