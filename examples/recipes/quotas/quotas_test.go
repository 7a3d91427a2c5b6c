package quotas

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/examples/recipes/internal/replica"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
)

type reports struct{}

func (reports) Export(context.Context, Tenant, string) ([]byte, error) { return nil, nil }

// A service is a replica, which remembers plans by itself.
type service struct {
	plans   *Plans
	reports Reports
}

// ask makes calls for a tenant, and returns how many were admitted, and by which max the last one was not.
func (s service) ask(t *testing.T, id string, calls int) (admitted int, limit int64) {
	limit = -1
	for range calls {
		_, err := s.reports.Export(t.Context(), s.plans.Tenant(t.Context(), id), "all")
		if limited := (*runtime.LimitedError)(nil); errors.As(err, &limited) {
			limit = limited.Limit
		} else if err != nil {
			t.Error(err)
		} else {
			admitted++
		}
	}
	return admitted, limit
}

// Replicas admit together what the plans allow, and what the exceptions do once
// those are changed while they run.
func TestQuotas(t *testing.T) {
	plans := map[string]int64{"acme": 20, "globex": 50, "odd:{*": 7, "late": 5}
	var exceptions atomic.Pointer[map[string]int64]
	exceptions.Store(&map[string]int64{"initech": 0, "odd:{*": 9})
	source := Exceptions(func(context.Context) (map[string]int64, error) { return *exceptions.Load(), nil })
	var services []service
	for _, limiter := range replica.Limiters(t, runtime.WithOverrides(source, 10*time.Millisecond)) {
		services = append(services, service{NewPlans(func(_ context.Context, id string) (Tenant, error) {
			if perHour, is := plans[id]; is {
				return Tenant{id, perHour}, nil
			}
			return Tenant{}, errors.New("no such tenant")
		}, time.Hour, 1), NewRateLimitedReports(reports{}, limiter)})
	}
	together := func(id string) int {
		both := replica.All(services, func(s service) int {
			admitted, _ := s.ask(t, id, 60)
			return admitted
		})
		return both[0] + both[1]
	}
	// follow waits until each replica has seen an exception, which it does at its own time.
	follow := func(id string, most int64) {
		t.Helper()
		for _, s := range services {
			limittest.Eventually(t, "the exception is in force", func() bool {
				_, limit := s.ask(t, id, 30)
				return limit == most
			})
		}
	}
	for id, want := range map[string]int{"acme": 20, "globex": 50, "unknown": 1, "initech": 0, "odd:{*": 9} {
		if got := together(id); got != want {
			t.Errorf("%q: %d admitted, want %d", id, got, want)
		}
	}
	exceptions.Store(&map[string]int64{"initech": 0, "odd:{*": 9, "acme": 25})
	follow("acme", 25)
	if got := together("globex"); got != 0 {
		t.Errorf("another tenant: %d more admitted, want 0", got)
	}
	exceptions.Store(&map[string]int64{"late": 0})
	follow("late", 0)
}

// The database is asked once in a while, and a limit does not fail with it.
func TestPlans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, perHour, failed := 0, int64(10), error(nil)
		plans := NewPlans(func(_ context.Context, id string) (Tenant, error) {
			asked++
			return Tenant{id, perHour}, failed
		}, time.Minute, 1)
		for i, step := range []struct {
			after  time.Duration
			now    int64
			failed error
			want   int64
			asked  int
		}{
			{0, 10, nil, 10, 1},
			{59 * time.Second, 20, nil, 10, 1},
			{time.Second, 20, nil, 20, 2},
			{time.Minute, 0, errors.New("away"), 20, 3},
			{time.Minute, 30, nil, 30, 4},
		} {
			time.Sleep(step.after)
			perHour, failed = step.now, step.failed
			if got := plans.Tenant(t.Context(), "a"); got != (Tenant{"a", step.want}) || asked != step.asked {
				t.Errorf("step %d: got %+v after %d queries, want %d after %d", i, got, asked, step.want, step.asked)
			}
		}
		failed = errors.New("away")
		if got := plans.Tenant(t.Context(), "b"); got != (Tenant{"b", 1}) {
			t.Errorf("without an answer: %+v", got)
		}
		for i := range maxPlans + 10 {
			plans.Tenant(t.Context(), strconv.Itoa(i))
		}
		if n := len(plans.known); n > maxPlans {
			t.Errorf("%d tenants are remembered", n)
		}
	})
}
