package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
)

// A call whose Wait is the RetryAfter that was just told waits, whatever time passes between.
func TestWaitExactlyAsTold(t *testing.T) {
	t.Parallel()
	limiter := inMemory()
	defer limiter.Close()
	rules := slices.Collect(maps.Values(serverRules(40*time.Hour, 10)))
	for i := range 2000 {
		r := *rules[i%len(rules)]
		if r.Algorithm >= runtime.LeakyBucket { // a queue has turns, and nobody knows when a permit comes back
			continue
		}
		waits := r
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
