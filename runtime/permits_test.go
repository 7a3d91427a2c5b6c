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
		if err := limiter.Settle(t.Context(), d); err != runtime.ErrSettled {
			t.Errorf("settled twice: %v", err)
		}
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

// Permits beside rates: all or none is charged, and only the permits come back. Those in
// shadow mode deny nobody.
func TestPermitsBesideRates(t *testing.T) {
	t.Parallel()
	limiter := inMemory()
	rate := (&runtime.Rule{Name: "rate", Window: time.Hour, Max: 3}).Limit(nil)
	permit, hidden := permitRule(1).Limit(nil), *permitRule(1)
	hidden.Name, hidden.Mode = "shadow", runtime.ModeShadow
	shadow := hidden.Limit(nil)
	d := taken(t, limiter, rate, permit, shadow)
	denied(t, limiter, rate, permit, shadow)
	wantLeft(t, limiter, rate, 2)
	same(t, "in flight", map[string]int64{"permits": 1, "shadow": 1}, limiter.Permits())
	settled(t, limiter, d)
	for limit, want := range map[*runtime.Limit]int64{&rate: 2, &permit: 1, &shadow: 1} {
		wantLeft(t, limiter, *limit, want)
	}
	all := []runtime.Decision{taken(t, limiter, shadow), taken(t, limiter, shadow)}
	for i, out := range limiter.TakeEach(t.Context(), permit, permit, rate) {
		if (out.Err == nil) != (i != 1) {
			t.Errorf("outcome %d: %v", i, out.Err)
		}
		all = append(all, out.Decision)
	}
	for _, d := range all {
		settled(t, limiter, d)
	}
	same(t, "in flight at the end", map[string]int64{"permits": 0, "shadow": 0}, limiter.Permits())
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

// Overrides and switches change a limit of permits like any other, and what was taken
// before is returned.
func TestPermitsFollowOverrides(t *testing.T) {
	bubble(t, func(t *testing.T) {
		limiter, board := following(t, time.Second)
		rule := permitRule(2)
		rule.Name = "r"
		limit := rule.Limit(nil)
		first, second := taken(t, limiter, limit), taken(t, limiter, limit)
		board.put(one(runtime.Override{Max: new(int64(5))}))
		third := taken(t, limiter, limit)
		wantLeft(t, limiter, limit, 2)
		board.put(one(runtime.Override{Max: new(int64(1))}))
		settled(t, limiter, first)
		denied(t, limiter, limit)
		board.put(one(runtime.Override{Enabled: new(false)}))
		settled(t, limiter, taken(t, limiter, limit))
		settled(t, limiter, second) // of a rule that is switched off by now
		board.put(runtime.Overrides{})
		wantLeft(t, limiter, limit, 1)
		settled(t, limiter, third)
		wantLeft(t, limiter, limit, 2)
	})
}
