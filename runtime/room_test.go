package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// roomRules are limits that are full for hours after one call of cost 10.
func roomRules() (rules []*runtime.Rule) {
	for _, r := range []runtime.Rule{
		{Algorithm: runtime.SlidingLog}, {Algorithm: runtime.SlidingLog, Storage: runtime.StoragePacked}, {Algorithm: runtime.SlidingLog, Resolution: time.Minute},
		{Algorithm: runtime.SlidingCounter}, {Algorithm: runtime.SlidingCounter, Buckets: rule.LayeredBuckets(6, 10)}, {Algorithm: runtime.SlidingCounter, Buckets: rule.AdaptiveBuckets()},
		{Algorithm: runtime.FixedWindow}, {Algorithm: runtime.FixedWindow, Reserve: time.Hour}, {Algorithm: runtime.FixedWindow, Period: rule.Day},
		{Algorithm: runtime.TokenBucket}, {Algorithm: runtime.Concurrency},
	} {
		r.Name, r.Max, r.Wait = "r", 10, 100*time.Hour
		if r.Period == rule.NoPeriod {
			r.Window = 40 * time.Hour
		}
		rules = append(rules, &r)
	}
	return rules
}

// A call whose Wait is the RetryAfter that was just told waits, whatever time passes between.
func TestWaitExactlyAsTold(t *testing.T) {
	t.Parallel()
	limiter := inMemory()
	defer limiter.Close()
	rules := roomRules()
	for i := range 2000 {
		r := *rules[i%(len(rules)-1)] // not of permits, of which nobody knows
		waits := r
		r.Wait = 0
		k := key(fmt.Sprint(i))
		taken(t, limiter, r.Limit(k).WithCost(10))
		_, limited := refused(t, limiter, r.Limit(k))
		waits.Wait = limited.RetryAfter
		ctx, cancel := context.WithCancel(context.Background())
		end := make(chan error, 1)
		go func() {
			_, err := limiter.Take(ctx, waits.Limit(k))
			end <- err
		}()
		eventually(t, "it waits", func() bool { return limiter.Lines() > 0 || len(end) > 0 })
		cancel()
		if err := <-end; !errors.Is(err, context.Canceled) {
			t.Fatalf("%v, told %v: %v", r.Algorithm, limited.RetryAfter, err)
		}
	}
}

// A line has a bound. Who comes after is refused at once, and a finding says so.
func TestFullLine(t *testing.T) {
	bubble(t, func(t *testing.T) {
		limiter := inMemory()
		limiter.BoundLines(20)
		limit := (&runtime.Rule{Name: "r", Window: time.Hour, Max: 1, Wait: 90 * time.Minute}).Limit(nil)
		taken(t, limiter, limit)
		var refused atomic.Int64
		for range 30 {
			go func() {
				if _, err := limiter.Take(context.Background(), limit); err != nil {
					refused.Add(1)
				}
			}()
		}
		synctest.Wait()
		equal(t, "calls and their line", limiter.Lines(), 21)
		equal(t, "findings", len(limiter.Findings()), 1)
		equal(t, "refused at once", refused.Load(), 10)
		ok(t, limiter.Reset(t.Context(), limit))
		time.Sleep(3 * time.Hour)
		equal(t, "refused", refused.Load(), 28) // one has the room of the reset, and one an hour later
		equal(t, "calls and their line", limiter.Lines(), 0)
	})
}
