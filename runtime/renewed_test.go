package runtime_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// permitRule returns a rule of so many permits that live for 30 seconds.
func permitRule(max int64) *runtime.Rule {
	return &runtime.Rule{Name: "permits", Algorithm: runtime.Concurrency, Window: 30 * time.Second, Max: max}
}

// reserveRule returns a budget of so much a day whose charges lapse after 30 seconds.
func reserveRule(max int64) *runtime.Rule {
	return &runtime.Rule{Name: "budget", Algorithm: runtime.FixedWindow, Window: 24 * time.Hour, Max: max, Reserve: 30 * time.Second}
}

// A renewed is a limit of 10 whose charges are renewed while their calls run, on a store of
// its own.
type renewed struct {
	store   *fakeStore
	limiter *runtime.Limiter
	limit   runtime.Limit
	keeps   int64 // of what a call cost in the end: 0 for permits, 1 for reservations
}

// eachRenewed runs a test for permits and for reservations.
func eachRenewed(t *testing.T, test func(*testing.T, renewed)) {
	t.Helper()
	for keeps, rule := range []*runtime.Rule{permitRule(10), reserveRule(10)} {
		t.Run(rule.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limiter, store := onFake()
				test(t, renewed{store, limiter, rule.Limit(key("k")), int64(keeps)})
				ok(t, limiter.Close())
			})
		})
	}
}

// copied returns calls that a store may keep.
func copied(calls []terms.Call) []terms.Call {
	calls = slices.Clone(calls)
	for i := range calls {
		calls[i].Charges = slices.Clone(calls[i].Charges)
		for j := range calls[i].Charges {
			calls[i].Charges[j].Key = slices.Clone(calls[i].Charges[j].Key)
		}
	}
	return calls
}

// A settlement that overtakes a renewal counts once, also where that is executed later: no
// permit is held that nobody holds, and nothing is charged twice.
func TestSettlementOvertakesRenewal(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		late  time.Duration // after the settlement, when the store executes the renewal
		lost  bool          // there is no answer to it
		freed time.Duration // when a permit is free at the latest, after late
	}{
		{10 * time.Millisecond, false, time.Millisecond},
		{10 * time.Millisecond, true, 1500 * time.Millisecond},
		{20 * time.Second, true, 1500 * time.Millisecond},
		{time.Minute, true, 30 * time.Second}, // it lapses
	} {
		eachRenewed(t, func(t *testing.T, c renewed) {
			begun, executed := make(chan struct{}), make(chan struct{})
			c.store.renew = func(ctx context.Context, calls []terms.Call) error {
				select {
				case <-begun:
					return c.store.engine.Renew(ctx, calls)
				default:
					close(begun)
				}
				execute := func(calls []terms.Call) {
					time.Sleep(test.late)
					_ = c.store.engine.Renew(context.Background(), calls)
					close(executed)
				}
				if test.lost {
					go execute(copied(calls))
					return errBroken
				}
				execute(calls)
				return nil
			}
			d := taken(t, c.limiter, c.limit.WithCost(4))
			<-begun
			settled(t, c.limiter, d, 3)
			wantLeft(t, c.limiter, c.limit, 10-3*c.keeps)
			<-executed
			if test.lost && c.keeps > 0 { // what is reserved again lapses
				time.Sleep(30 * time.Second)
			}
			for _, wait := range []time.Duration{test.freed, time.Hour} {
				time.Sleep(wait)
				synctest.Wait()
				wantLeft(t, c.limiter, c.limit, 10-3*c.keeps)
			}
		})
	}
}
