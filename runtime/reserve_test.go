package runtime_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// What a call has reserved is charged for as long as it runs, and what it cost afterwards.
func TestReservationsAreHeld(t *testing.T) {
	t.Parallel()
	for _, period := range []runtime.Period{runtime.NoPeriod, runtime.Month} {
		for kind, end := range map[string]struct {
			costs []int64
			want  int64
		}{
			"nothing said": {nil, 60}, "unknown": {[]int64{-1}, 60}, "less": {[]int64{7}, 93}, "as much": {[]int64{40}, 60},
			"nothing": {[]int64{0}, 100}, "more": {[]int64{90}, 10}, "invalid": {[]int64{runtime.MaxAmount + 1}, 60},
		} {
			t.Run(period.String()+"/"+kind, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					limiter := inMemory()
					rule := reserveRule(100)
					if period != runtime.NoPeriod {
						rule.Window, rule.Period = 0, period
					}
					limit := rule.Limit(key("k"))
					d := taken(t, limiter, limit.WithCost(40))
					for range 100 {
						time.Sleep(29*time.Second + time.Millisecond) // at no time of a renewal
						wantLeft(t, limiter, limit, 60)
					}
					equal(t, "rules of permits", len(limiter.Permits()), 0)
					if err := limiter.Settle(t.Context(), d, end.costs...); (err != nil) != (kind == "invalid") {
						t.Error(err)
					}
					wantLeft(t, limiter, limit, end.want)
					if err := limiter.Settle(t.Context(), d, 1); err != runtime.ErrSettled {
						t.Errorf("settled twice: %v", err)
					}
					time.Sleep(time.Hour)
					wantLeft(t, limiter, limit, end.want)
				})
			})
		}
	}
}

// A call that runs on when its period is over was charged there, and owes only what it cost
// beyond that.
func TestReservationsAcrossPeriods(t *testing.T) {
	t.Parallel()
	for cost, want := range map[int64]int64{0: 10, 2: 10, 4: 10, 7: 7} {
		synctest.Test(t, func(t *testing.T) {
			limiter := runtime.New(runtime.NewMemoryStore(), quiet)
			limit := reserveRule(10).Limit(nil)
			d := taken(t, limiter, limit.WithCost(4))
			time.Sleep(24*time.Hour - time.Second)
			wantLeft(t, limiter, limit, 6)
			time.Sleep(time.Hour)
			wantLeft(t, limiter, limit, 10)
			settled(t, limiter, d, cost)
			wantLeft(t, limiter, limit, want)
		})
	}
}

// A process that was cut off while its call ran has it charged again when it is back, and
// what it cost once.
func TestReservationsOfACutOffProcess(t *testing.T) {
	t.Parallel()
	for _, back := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store := newFake()
			var connected atomic.Bool
			store.renew = func(ctx context.Context, calls []terms.Call) error {
				if !connected.Load() {
					return errBroken
				}
				return store.MemoryStore.Renew(ctx, calls)
			}
			limiter := runtime.New(store, quiet)
			limit := reserveRule(10).Limit(nil)
			d := taken(t, limiter, limit.WithCost(4))
			time.Sleep(time.Minute)
			wantLeft(t, limiter, limit, 10)
			if back {
				connected.Store(true)
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
}

// A reset forgets what a call has reserved, which is then charged only what it cost beyond
// that, also when nothing is left in the store of the reset.
func TestResetBeforeALongCallEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for cost, want := range map[int64]int64{0: 8, 3: 8, 4: 8, 6: 6} {
			limiter := inMemory()
			limit := reserveRule(10).Limit(nil)
			long := taken(t, limiter, limit.WithCost(4))
			ok(t, limiter.Reset(t.Context(), limit))
			time.Sleep(5 * time.Minute)
			taken(t, limiter, limit.WithCost(2))
			settled(t, limiter, long, cost)
			wantLeft(t, limiter, limit, want)
			ok(t, limiter.Close())
		}
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
		budget := reserveRule(10).Limit(nil)
		shadow := reserveRule(4)
		shadow.Name, shadow.Mode = "shadow", runtime.ModeShadow
		permit := permitRule(2).Limit(nil)
		all := []runtime.Limit{rate.WithCost(3), budget.WithCost(3), budget.WithCost(2), shadow.Limit(nil).WithCost(3), permit}
		d := taken(t, limiter, all...)
		other := taken(t, limiter, all...)
		denied(t, limiter, all...)
		time.Sleep(10 * time.Minute)
		wantLeft(t, limiter, budget, 0)
		wantLeft(t, limiter, shadow.Limit(nil), 1)
		settled(t, limiter, d, 1, 1, 1, 2)
		settled(t, limiter, other)
		wantLeft(t, limiter, rate, 26)
		wantLeft(t, limiter, budget, 3)
		wantLeft(t, limiter, shadow.Limit(nil), 2)
		wantLeft(t, limiter, permit, 2)
	})
}

// What a stream has used stays charged, and what it has in advance lapses with its process.
func TestMeteredReservations(t *testing.T) {
	t.Parallel()
	for _, crash := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store := runtime.NewMemoryStore()
			limiter, other := runtime.New(store, quiet), runtime.New(store, quiet)
			limit := reserveRule(10_000).Limit(key("k"))
			m := limiter.Meter(t.Context(), taken(t, limiter, limit))
			for range 1000 {
				ok(t, m.Charge(2))
				time.Sleep(100 * time.Millisecond)
			}
			if d, err := other.Peek(t.Context(), limit); err != nil || d.Remaining > 10_000-2001 {
				t.Errorf("%d left, %v", d.Remaining, err)
			}
			advance := m.Advance(0)
			if !crash {
				m.Close()
				synctest.Wait()
			}
			ok(t, limiter.Close())
			for range 10 {
				time.Sleep(time.Minute)
				// What was used of the newest piece is only known at its end.
				if n := left(t, other, limit); n < 10_000-2001 || !crash && n != 10_000-2001 || n > 10_000-2001+2*max(advance, 50) {
					t.Fatalf("crash %t: %d left, want %d", crash, n, 10_000-2001)
				}
			}
		})
	}
}
