package storetest

import (
	"time"

	"github.com/rategen/rategen/runtime"
)

// usage wants callers to see what is left to them: of every limit, at every count, and
// without changing it.
func usage(t *trial) {
	t.rule.Prefix = Prefix(t.T)
	other := t.rule
	other.Name, other.Prefix, other.Max = "other", Prefix(t.T)+"other:", 20
	limiter := runtime.New(t.Store, runtime.WithFailurePolicy(runtime.FailClosed))
	limit := func(id string) runtime.Limit { return t.rule.Limit(runtime.NewKey().AddString(id)) }
	for used := int64(0); used <= t.rule.Max; used++ {
		for range 2 {
			usages, err := limiter.Usage(t.Context(), limit("a").WithCost(used), limit("b"), other.Limit(runtime.NewKey().AddString("a")).WithMax(15))
			if err != nil || len(usages) != 3 {
				t.Fatalf("got %+v, %v", usages, err)
			}
			for i, want := range []int64{t.rule.Max - used, t.rule.Max, 15} {
				u := usages[i]
				if u.Remaining != want || u.Limit != max(want, t.rule.Max) || u.Max != u.Limit || u.Mode != t.rule.Mode || u.Algorithm != t.rule.Algorithm || u.Period != t.rule.Period {
					t.Errorf("%d used: usage %d is %+v, want %d left", used, i, u, want)
				}
				if full := u.Remaining == 0; u.RetryAfter > 0 != full || u.Blocked {
					t.Errorf("%d used: usage %d is %+v, want a time to wait only if nothing is left", used, i, u)
				}
				whole := i > 0 || used == 0
				if isCalendar(&t.rule) {
					if u.Window < 365*24*time.Hour || u.ResetAfter <= 0 || u.ResetAfter > u.Window {
						t.Errorf("%d used: usage %d is %+v, want the rest of a year", used, i, u)
					}
				} else if u.Window != t.rule.Window || u.ResetAfter > 0 == whole {
					t.Errorf("%d used: usage %d is %+v, want a time to the reset only if something is used", used, i, u)
				}
			}
		}
		if used < t.rule.Max {
			if _, err := limiter.Take(t.Context(), limit("a")); err != nil {
				t.Fatal(err)
			}
		}
	}
}
