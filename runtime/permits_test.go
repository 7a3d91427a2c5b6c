package runtime_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
)

// A call holds its permits for as long as it runs, and no longer.
func TestPermitsAreHeld(t *testing.T) {
	bubble(t, func(t *testing.T) {
		limiter := inMemory()
		limit := permitRule(5).Limit(key("k"))
		d := taken(t, limiter, limit.WithCost(2))
		for minute := range 30 {
			time.Sleep(time.Minute + time.Duration(minute)*time.Millisecond)
			wantLeft(t, limiter, limit, 3)
		}
		other := taken(t, limiter, limit.WithCost(3))
		denied(t, limiter, limit)
		same(t, "in flight", map[string]int64{"permits": 5}, limiter.Permits())
		settled(t, limiter, d)
		wantError(t, "settled twice", limiter.Settle(t.Context(), d), runtime.ErrSettled)
		wantLeft(t, limiter, limit, 2)
		limiter.SettleLater(t.Context(), other)
		time.Sleep(time.Millisecond)
		wantLeft(t, limiter, limit, 5)
		same(t, "in flight", map[string]int64{"permits": 0}, limiter.Permits())
	})
}

// A settled cost that is no cost keeps no permit from being returned.
func TestInvalidSettlementReturnsPermits(t *testing.T) {
	t.Parallel()
	for _, later := range []bool{false, true} {
		limiter := inMemory()
		rate := (&runtime.Rule{Name: "rate", Window: time.Hour, Max: 10}).Limit(nil)
		permit := permitRule(1).Limit(nil)
		d := taken(t, limiter, rate.WithCost(4), permit)
		if wrong := int64(runtime.MaxCount + 1); later {
			limiter.SettleLater(t.Context(), d, wrong)
		} else if err := limiter.Settle(t.Context(), d, wrong); !errors.Is(err, runtime.ErrInvalidLimit) {
			t.Errorf("got %v", err)
		}
		wantLeft(t, limiter, permit, 1)
		wantLeft(t, limiter, rate, 6)
	}
}

// While the store fails, a rule that fails locally has permits in the process,
// which are renewed and returned like others.
func TestLocalPermits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, replicas := range []int{1, 2} {
			limiter := runtime.New(new(brokenStore), quiet, runtime.WithFailurePolicy(runtime.FailLocal), runtime.WithReplicas(replicas))
			limit := permitRule(4).Limit(nil)
			all := make([]runtime.Decision, 4/replicas)
			for i := range all {
				all[i] = taken(t, limiter, limit)
			}
			time.Sleep(time.Hour)
			synctest.Wait() // a permit that is renewed while it is returned is back a little later
			for i, d := range all {
				denied(t, limiter, limit)
				settled(t, limiter, d)
				all[i] = taken(t, limiter, limit)
			}
			denied(t, limiter, limit)
			for _, d := range all {
				settled(t, limiter, d)
			}
			// A call that costs more than its share takes all of it.
			settled(t, limiter, taken(t, limiter, limit.WithCost(3)))
			equal(t, "in flight", limiter.Permits()["permits"], 0)
			for range all {
				taken(t, limiter, limit)
			}
			_ = limiter.Close()
		}
	})
}
