package runtime_test

import (
	"context"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// TestRetryAfterByStopwatch holds a stopwatch against the RetryAfter of a call
// of cost 7, on the clock of a real Redis.
func TestRetryAfterByStopwatch(t *testing.T) {
	t.Parallel()
	const precision = 20 * time.Millisecond
	ctx := context.Background()
	client := redistest.Start(t).Client(t)
	limiter := onRedis(client)
	for name, rule := range serverRules(time.Second, 10) {
		if rule.Algorithm == runtime.Concurrency {
			continue // whose RetryAfter is a hint
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			closest := time.Hour
			for try := range 20 {
				id := runtime.NewKey().AddInt(int64(try))
				for _, cost := range []int64{3, 1, 4, 2} {
					taken(t, limiter, rule.Limit(id).WithCost(cost))
					time.Sleep(7 * time.Millisecond) // so that they leave one by one
				}
				limit := rule.Limit(id).WithCost(7)
				asked := time.Now()
				d, err := limiter.Peek(ctx, limit)
				told := time.Now()
				if err != nil {
					t.Fatal(err)
				}
				if d.Allowed { // some have left already
					continue
				}
				time.Sleep(d.RetryAfter - precision)
				denied, allowed := told, time.Time{} // when it was last asked in vain, and first told yes
				for allowed.IsZero() {
					now := time.Now()
					again, err := limiter.Peek(ctx, limit)
					if err != nil {
						t.Fatal(err)
					}
					if again.Allowed {
						allowed = time.Now()
					} else {
						denied = now
						time.Sleep(time.Millisecond) // others measure too
					}
				}
				if early := d.RetryAfter - allowed.Sub(asked); early > 0 {
					t.Fatalf("admitted %v before its RetryAfter of %v", early, d.RetryAfter)
				}
				if late := denied.Sub(told) - d.RetryAfter; late > 0 {
					t.Fatalf("denied %v after its RetryAfter of %v", late, d.RetryAfter)
				}
				// The truth lies in between. A busy machine may need
				// another try to measure it closely enough.
				off := allowed.Sub(denied) + told.Sub(asked)
				if off <= precision {
					t.Logf("RetryAfter %v is exact to %v", d.RetryAfter, off)
					return
				}
				closest = min(closest, off)
			}
			if closest == time.Hour {
				t.Error("no denial in twenty tries")
			}
			t.Skipf("the machine is so busy that RetryAfter could only be measured to %v", closest)
		})
	}
}
