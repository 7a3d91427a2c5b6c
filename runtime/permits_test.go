package runtime_test

import (
	"errors"
	"maps"
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
		synctest.Wait()
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
		if left(t, limiter, permit) != 1 || left(t, limiter, rate) != 6 {
			t.Errorf("left %d of the permits and %d of the rate", left(t, limiter, permit), left(t, limiter, rate))
		}
	}
}

// Permits beside rates: all or none is charged, and only the permits come back.
func TestPermitsBesideRates(t *testing.T) {
	t.Parallel()
	limiter := inMemory()
	rate := (&runtime.Rule{Name: "rate", Window: time.Hour, Max: 3}).Limit(nil)
	permit := permitRule(1).Limit(nil)
	shadow := *permitRule(1)
	shadow.Name, shadow.Mode = "shadow", runtime.ModeShadow
	all := []runtime.Limit{rate, permit, shadow.Limit(nil)}
	d := taken(t, limiter, all...)
	denied(t, limiter, all...)
	wantLeft(t, limiter, rate, 2)
	want := map[string]int64{"permits": 1, "shadow": 1}
	if got := limiter.Permits(); !maps.Equal(got, want) {
		t.Errorf("in flight: %v", got)
	}
	settled(t, limiter, d)
	if left(t, limiter, rate) != 2 || left(t, limiter, permit) != 1 || left(t, limiter, shadow.Limit(nil)) != 1 {
		t.Error("not only the permits came back")
	}
	// Shadow permits deny nobody.
	two := []runtime.Decision{taken(t, limiter, all[2]), taken(t, limiter, all[2])}
	for i, out := range limiter.TakeEach(t.Context(), permit, permit, rate) {
		if (out.Err == nil) != (i != 1) {
			t.Errorf("outcome %d: %v", i, out.Err)
		}
		two = append(two, out.Decision)
	}
	for _, d := range two {
		settled(t, limiter, d)
	}
	want = map[string]int64{"permits": 0, "shadow": 0}
	if got := limiter.Permits(); !maps.Equal(got, want) {
		t.Errorf("in flight at the end: %v", got)
	}
}

// While the store fails, a rule that fails locally has permits in the process,
// which are renewed and returned like others.
func TestLocalPermits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, replicas := range []int{1, 2} {
			limiter := runtime.New(new(brokenStore), quiet, runtime.WithFailurePolicy(runtime.FailLocal), runtime.WithReplicas(replicas))
			limit := permitRule(4).Limit(nil)
			var all []runtime.Decision
			for {
				d, err := limiter.Take(t.Context(), limit)
				if err != nil {
					break
				}
				all = append(all, d)
			}
			if len(all) != 4/replicas {
				t.Fatalf("%d permits for one of %d replicas", len(all), replicas)
			}
			time.Sleep(time.Hour)
			synctest.Wait() // a permit that is renewed while it is returned is back a little later
			denied(t, limiter, limit)
			for i, d := range all {
				settled(t, limiter, d)
				again := taken(t, limiter, limit)
				denied(t, limiter, limit)
				settled(t, limiter, again)
				all[i] = taken(t, limiter, limit)
			}
			// A call that costs more than its share takes all of it.
			for _, d := range all {
				settled(t, limiter, d)
			}
			d := taken(t, limiter, limit.WithCost(3))
			settled(t, limiter, d)
			equal(t, "in flight", limiter.Permits()["permits"], 0)
			for range 4 / replicas {
				taken(t, limiter, limit)
			}
			_ = limiter.Close()
		}
	})
}

// Overrides, load and switches change a limit of permits like any other.
func TestPermitsFollowOverrides(t *testing.T) {
	bubble(t, func(t *testing.T) {
		limiter, board := following(t, time.Second)
		limit := permitRule(2).Limit(nil)
		override := func(o runtime.Override) {
			board.put(runtime.Overrides{Rules: map[string]runtime.Override{"permits": o}})
		}
		first, second := taken(t, limiter, limit), taken(t, limiter, limit)
		override(runtime.Override{Max: new(int64(5))})
		third := taken(t, limiter, limit)
		wantLeft(t, limiter, limit, 2)
		override(runtime.Override{Max: new(int64(1))})
		settled(t, limiter, first)
		denied(t, limiter, limit)
		override(runtime.Override{Enabled: new(false)})
		free := taken(t, limiter, limit)
		settled(t, limiter, free)
		settled(t, limiter, second) // of a rule that is switched off by now
		override(runtime.Override{})
		wantLeft(t, limiter, limit, 1)
		settled(t, limiter, third)
		wantLeft(t, limiter, limit, 2)
	})
}
