package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
)

// TestFreeOfMany has many callers at no cost share requests, and others who charge the key, and
// wants none to be counted, and all to be refused from a block on.
func TestFreeOfMany(t *testing.T) {
	client := ownRedis(t)
	limiter := onRedis(client)
	for name, rule := range blockingRules(10*time.Hour, 100) {
		rule.Block = time.Hour
		for _, callers := range []int{1, 2, 8, 256} {
			limit := rule.Limit(key(fmt.Sprint(callers)))
			var passed, charged atomic.Int64
			calls := func() {
				concurrently(callers, func(i int) {
					for range 4 {
						if _, err := limiter.Take(context.Background(), limit.WithCost(0)); err == nil {
							passed.Add(1)
						} else if !errors.Is(err, runtime.ErrLimited) {
							t.Error(err)
						}
						if i == 0 {
							if _, err := limiter.Take(context.Background(), limit); err == nil {
								charged.Add(1)
							}
						}
					}
				})
			}
			calls()
			equal(t, fmt.Sprintf("%s, %d callers: passed", name, callers), passed.Swap(0), int64(4*callers))
			equal(t, fmt.Sprintf("%s, %d callers: charged", name, callers), charged.Swap(0), 4)
			wantLeft(t, limiter, limit, 96)
			blockedBy(t, limiter, limit.WithCost(97))
			calls()
			equal(t, fmt.Sprintf("%s, %d callers: passed a block", name, callers), passed.Load()+charged.Load(), 0)
		}
	}
}
