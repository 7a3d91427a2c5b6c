package runtime_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
)

// What a call has reserved is charged for as long as it runs, and what it cost afterwards.
func TestReservationsAreHeld(t *testing.T) {
	type test struct {
		period runtime.Period
		costs  []int64
		want   int64
		err    error
	}
	tests := map[string]test{}
	for _, period := range []runtime.Period{runtime.NoPeriod, runtime.Month} {
		for kind, test := range map[string]test{
			"nothing said": {want: 60}, "unknown": {costs: []int64{-1}, want: 60}, "less": {costs: []int64{7}, want: 93},
			"as much": {costs: []int64{40}, want: 60}, "nothing": {costs: []int64{0}, want: 100}, "more": {costs: []int64{90}, want: 10},
			"invalid": {costs: []int64{runtime.MaxAmount + 1}, want: 60, err: runtime.ErrInvalidLimit},
		} {
			test.period = period
			tests[fmt.Sprint(period, "/", kind)] = test
		}
	}
	eachCase(t, tests, func(t *testing.T, test test) {
		limiter := inMemory()
		rule := reserveRule(100)
		if rule.Period = test.period; rule.Period != runtime.NoPeriod {
			rule.Window = 0
		}
		limit := rule.Limit(key("k"))
		d := taken(t, limiter, limit.WithCost(40))
		for range 100 {
			time.Sleep(29*time.Second + time.Millisecond) // at no time of a renewal
			wantLeft(t, limiter, limit, 60)
		}
		equal(t, "rules of permits", len(limiter.Permits()), 0)
		wantError(t, "settle", limiter.Settle(t.Context(), d, test.costs...), test.err)
		wantLeft(t, limiter, limit, test.want)
		wantError(t, "settled twice", limiter.Settle(t.Context(), d, 1), runtime.ErrSettled)
		time.Sleep(time.Hour)
		wantLeft(t, limiter, limit, test.want)
	})
}

// A call whose charge is forgotten while it runs, because its period is over or by a reset,
// owes only what it cost beyond that, whatever is left in the store of either.
func TestForgottenReservations(t *testing.T) {
	t.Parallel()
	for cost, beyond := range map[int64]int64{0: 0, 3: 0, 4: 0, 6: 2} {
		synctest.Test(t, func(t *testing.T) {
			limiter := inMemory()
			limit := reserveRule(10).Limit(nil)
			long := taken(t, limiter, limit.WithCost(4))
			ok(t, limiter.Reset(t.Context(), limit))
			time.Sleep(5 * time.Minute)
			taken(t, limiter, limit.WithCost(2))
			settled(t, limiter, long, cost)
			wantLeft(t, limiter, limit, 8-beyond)

			across := reserveRule(10).Limit(key("across"))
			d := taken(t, limiter, across.WithCost(4))
			time.Sleep(24*time.Hour - time.Second)
			wantLeft(t, limiter, across, 6)
			time.Sleep(time.Hour)
			wantLeft(t, limiter, across, 10)
			settled(t, limiter, d, cost)
			wantLeft(t, limiter, across, 10-beyond)
			ok(t, limiter.Close())
		})
	}
}

// A process that was cut off while its call ran has it charged again when it is back, and
// what it cost once.
func TestReservationsOfACutOffProcess(t *testing.T) {
	eachCase(t, map[string]bool{"back": true, "not back": false}, func(t *testing.T, back bool) {
		store := newFake()
		away := store.renewsUnless()
		away.Store(true)
		limiter := runtime.New(store, quiet)
		limit := reserveRule(10).Limit(nil)
		d := taken(t, limiter, limit.WithCost(4))
		time.Sleep(time.Minute)
		wantLeft(t, limiter, limit, 10)
		if back {
			away.Store(false)
			time.Sleep(5 * time.Second)
			wantLeft(t, limiter, limit, 6)
			time.Sleep(time.Hour)
			wantLeft(t, limiter, limit, 6)
		}
		settled(t, limiter, d, 5)
		wantLeft(t, limiter, limit, 5)
		time.Sleep(time.Hour)
		wantLeft(t, limiter, limit, 5)
	})
}

// While the store fails a process reserves in its own counts.
func TestLocalReservations(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, cost := range []int64{0, 2, 5, 7} {
			limiter := runtime.New(new(brokenStore), quiet, runtime.WithFailurePolicy(runtime.FailLocal))
			limit := reserveRule(10).Limit(nil)
			d := taken(t, limiter, limit.WithCost(5))
			time.Sleep(time.Hour + time.Second) // it is renewed at no time of what follows
			denied(t, limiter, limit.WithCost(6))
			settled(t, limiter, d, cost)
			denied(t, limiter, limit.WithCost(11-cost))
			taken(t, limiter, limit.WithCost(10-cost))
			ok(t, limiter.Close())
		}
	})
}

// Reservations beside other limits, in shadow mode, and twice on one key.
func TestReservationsBesideOthers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		limiter := inMemory()
		rate := (&runtime.Rule{Name: "rate", Window: time.Hour, Max: 30}).Limit(nil)
		budget, hidden, permit := reserveRule(10).Limit(nil), reserveRule(4), permitRule(2).Limit(nil)
		hidden.Name, hidden.Mode = "shadow", runtime.ModeShadow
		shadow := hidden.Limit(nil)
		all := []runtime.Limit{rate.WithCost(3), budget.WithCost(3), budget.WithCost(2), shadow.WithCost(3), permit}
		d, other := taken(t, limiter, all...), taken(t, limiter, all...)
		denied(t, limiter, all...)
		time.Sleep(10 * time.Minute)
		wantLeft(t, limiter, budget, 0)
		wantLeft(t, limiter, shadow, 1)
		settled(t, limiter, d, 1, 1, 1, 2)
		settled(t, limiter, other)
		for limit, want := range map[*runtime.Limit]int64{&rate: 26, &budget: 3, &shadow: 2, &permit: 2} {
			wantLeft(t, limiter, *limit, want)
		}
	})
}

// A call that outlasts its period is not charged to the next one, although its renewal finds
// no key: that has expired, and is not lost.
func TestReservationsOutlastTheirKey(t *testing.T) {
	client := ownRedis(t)
	limiter := onRedis(client)
	rule := reserveRule(10)
	rule.Window, rule.Reserve = time.Second, 900*time.Millisecond // renewed every 300 ms
	limit := rule.Limit(key("k"))
	d := taken(t, limiter, limit.WithCost(4))
	begin := time.Now()
	eventually(t, "the key expires", func() bool { return client.Exists(t.Context(), limiter.RedisKey(limit)).Val() == 0 })
	if lived := time.Since(begin); lived < rule.Window-10*time.Millisecond {
		t.Errorf("the key lived %v", lived)
	}
	for end := time.Now().Add(rule.Reserve); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		wantLeft(t, limiter, limit, 10)
	}
	settled(t, limiter, d, 5)
	wantLeft(t, limiter, limit, 9) // what it cost beyond its charge
}

// A key with reservations, or what is owed, that has lost its expiry gets one by whatever comes
// next, or soon after.
func TestReservationsExpire(t *testing.T) {
	client := ownRedis(t)
	limiter := onRedis(client, atOnce)
	for _, rule := range []*runtime.Rule{
		{Name: "reserves", Window: 10 * time.Second, Max: 100, Reserve: 5 * time.Second},
		{Name: "carries", Window: 10 * time.Second, Max: 100, Debt: runtime.DebtCarry},
		{Name: "month", Period: runtime.Month, Max: 100, Reserve: 5 * time.Second, Debt: runtime.DebtForgive},
	} {
		rule.Algorithm = runtime.FixedWindow
		limit := rule.Limit(key("k"))
		name := limiter.RedisKey(limit)
		d := taken(t, limiter, limit.WithCost(10))
		expires := func(when string, act func()) {
			t.Helper()
			ok(t, client.Persist(t.Context(), name).Err())
			eventually(t, rule.Name+" has an expiry after "+when, func() bool {
				act()
				time.Sleep(10 * time.Millisecond)
				return client.PTTL(t.Context(), name).Val() > 0
			})
			lives := client.PTTL(t.Context(), name).Val()
			if r, err := limiter.Peek(t.Context(), limit); err != nil || lives > r.ResetAfter+2*time.Second || lives < r.ResetAfter {
				t.Errorf("%s: lives for %v after %s, and is whole after %v with %d left, %v", rule.Name, lives, when, r.ResetAfter, r.Remaining, err)
			}
		}
		expires("a denial", func() { denied(t, limiter, limit.WithCost(100)) })
		expires("calls", func() { settled(t, limiter, taken(t, limiter, limit), 0) })
		settled(t, limiter, d)
	}
}

// testReservationsOfManyCallers wants calls of many callers never to use more than the budget,
// and that to have what they cost at the end.
func testReservationsOfManyCallers(t *testing.T, replica replicas) {
	limiters := []*runtime.Limiter{replica(), replica()}
	limit := reserveRule(600).Limit(key("k"))
	for _, callers := range []int{1, 2, 8, 64} {
		var cost, running atomic.Int64
		concurrently(callers, func(i int) {
			limiter := limiters[i%2]
			for n := range int64(40) {
				d, err := limiter.Take(t.Context(), limit.WithCost(5))
				if err != nil {
					continue
				}
				if now := running.Add(5); now+cost.Load() > 600+5*int64(callers) {
					t.Errorf("%d reserved and %d used", now, cost.Load())
				}
				cost.Add(n % 4)
				running.Add(-5)
				if n%2 == 0 {
					limiter.SettleLater(t.Context(), d, n%4)
				} else {
					settled(t, limiter, d, n%4)
				}
			}
		})
		eventually(t, "all is settled", func() bool { return left(t, limiters[0], limit) == 600-cost.Load() })
		ok(t, limiters[0].Reset(t.Context(), limit))
	}
}
