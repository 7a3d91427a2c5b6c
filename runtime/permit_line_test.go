package runtime_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/runtime"
)

// waitingRule returns a rule of so many permits that a call may wait for.
func waitingRule(max int64, wait time.Duration) *runtime.Rule {
	rule := permitRule(max)
	rule.Wait = wait
	return rule
}

// A lateContext has a deadline and no end.
type lateContext struct {
	context.Context
	deadline time.Time
}

func (c lateContext) Deadline() (time.Time, bool) { return c.deadline, true }

// A call waits no longer than its rule and its context let it. By its rule it is refused, and
// by its context it is not, even if that has not said yet that its deadline is over.
func TestLineEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		limiter := inMemory(runtime.WithRefusalError(func(ctx context.Context, err error) error {
			if _, ends := ctx.Deadline(); ends {
				t.Errorf("refused by %v", err)
			}
			return err
		}))
		limit := waitingRule(1, 300*time.Millisecond).Limit(nil)
		holding := taken(t, limiter, limit)
		for range 3 { // the second and third wait behind others
			go func() {
				var limited *runtime.LimitedError
				took := elapsed(func() { _, limited = refused(t, limiter, limit) })
				if took != 300*time.Millisecond || limited.RetryAfter <= 0 || limited.Limit != 1 {
					t.Errorf("after %v: %+v", took, limited)
				}
			}()
		}
		const soon = 200 * time.Millisecond
		ends, cancel := context.WithTimeout(context.Background(), soon)
		defer cancel()
		for _, ctx := range []context.Context{ends, lateContext{context.Background(), time.Now().Add(soon)}} {
			go func() {
				var err error
				if took := elapsed(func() { _, err = limiter.Take(ctx, limit) }); took != soon || err != context.DeadlineExceeded {
					t.Errorf("got %v after %v", err, took)
				}
			}()
		}
		time.Sleep(time.Second)
		// Nobody is left in the line: a call asks at once.
		equal(t, "lines and calls in them", limiter.Lines(), 0)
		settled(t, limiter, holding)
		equal(t, "waited", elapsed(func() { holding = taken(t, limiter, limit) }), 0)
	})
}

// A program that makes new rules all the time does not fill its memory with those
// that were in flight.
func TestInFlightIsBounded(t *testing.T) {
	t.Parallel()
	limiter := inMemory()
	for i := range 12_000 {
		limit := (&runtime.Rule{Name: fmt.Sprint(i), Algorithm: runtime.Concurrency, Window: time.Minute, Max: 1}).Limit(nil)
		settled(t, limiter, taken(t, limiter, limit))
	}
	between(t, "names", len(bridge.LimiterOf(limiter).Permits()), 1, 10_001)
}
