package runtime_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
)

// waiters starts calls that wait, and returns when they do. done then waits for them
// and returns after how long each has ended, and how many were refused.
func waiters(limiter *runtime.Limiter, n int, hold time.Duration, limit runtime.Limit) (done func() (ended []time.Duration, refused int)) {
	var wait sync.WaitGroup
	var ends recorder[time.Duration]
	var refusals atomic.Int64
	start := time.Now()
	for range n {
		wait.Go(func() {
			d, err := limiter.Take(context.Background(), limit)
			ends.add(time.Since(start))
			if err != nil {
				refusals.Add(1)
				return
			}
			time.Sleep(hold)
			_ = limiter.Settle(context.Background(), d)
		})
		time.Sleep(time.Microsecond) // their order
	}
	synctest.Wait()
	return func() ([]time.Duration, int) {
		wait.Wait()
		return ends.all(), int(refusals.Load())
	}
}
