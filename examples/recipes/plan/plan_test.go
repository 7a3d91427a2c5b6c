package plan

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rategen/rategen/examples/recipes/internal/replica"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
)

// An index finds nothing, or fails.
type index struct{ fails *atomic.Bool }

func (i index) Find(context.Context, Customer, string) ([]string, error) {
	if i.fails.Load() {
		return nil, errors.New("the index is down")
	}
	return nil, nil
}

// What a customer sends too fast, or the index fails to answer, is nothing of its month, over
// all replicas.
func TestPlan(t *testing.T) {
	var fails atomic.Bool
	var replicas []Search
	limiters := replica.Limiters(t, replica.Year("plan.second"))
	for _, limiter := range limiters {
		replicas = append(replicas, NewRateLimitedSearch(index{&fails}, limiter))
	}
	ann := Customer{ID: "ann", Monthly: 8, PerSecond: 5, Zone: "Asia/Kolkata", BillingDay: 31}
	// finds has both replicas make ten calls, of which so many are refused by a rule, and the others find.
	finds := func(want int, rule string) {
		t.Helper()
		found := 0
		for _, n := range replica.All(replicas, func(s Search) (n int) {
			for range 10 {
				_, err := s.Find(t.Context(), ann, "x")
				var limited *runtime.LimitedError
				if err == nil {
					n++
				} else if !errors.As(err, &limited) || limited.Rule != rule {
					t.Errorf("%v, want a refusal by %s", err, rule)
				}
			}
			return n
		}) {
			found += n
		}
		if found != want {
			t.Errorf("%d found, want %d and the others refused by %s", found, want, rule)
		}
	}
	finds(5, "plan.second")
	ann.PerSecond = 100 // a second later, or a larger plan
	fails.Store(true)
	for range 2 {
		if _, err := replicas[0].Find(t.Context(), ann, "x"); err == nil || errors.Is(err, runtime.ErrLimited) {
			t.Error(err)
		}
	}
	fails.Store(false)
	limittest.Eventually(t, "what failed is refunded", func() bool {
		month := searchFindLimit2.Limit(runtime.NewKey().AddString(ann.ID)).WithMax(ann.Monthly).WithPeriod(ann.Zone, int64(ann.BillingDay))
		return limittest.Left(t, limiters[0], month) == 3
	})
	finds(3, "plan.month")
}

// A month ends on the billing day of each customer, where that lives.
func TestBillingDay(t *testing.T) {
	now := time.Date(2027, time.February, 27, 17, 0, 0, 0, time.UTC)
	limiter := runtime.New(runtime.NewMemoryStore(runtime.WithClock(func() time.Time { return now })), runtime.WithLogger(slog.New(slog.DiscardHandler)))
	search := NewRateLimitedSearch(index{new(atomic.Bool)}, limiter)
	for _, c := range []struct {
		zone string
		day  int
		ends string
	}{
		{"America/New_York", 31, "2027-02-28T05:00:00Z"}, // a month without the day has its last one
		{"Asia/Tokyo", 28, "2027-03-27T15:00:00Z"},       // where it is the 28th already
		{"UTC", 1, "2027-03-01T00:00:00Z"},
	} {
		now = time.Date(2027, time.February, 27, 17, 0, 0, 0, time.UTC)
		customer := Customer{ID: c.zone, Monthly: 3, PerSecond: 100, Zone: c.zone, BillingDay: c.day}
		find := func() (err error) {
			_, err = search.Find(t.Context(), customer, "x")
			return err
		}
		for range 3 {
			if err := find(); err != nil {
				t.Fatal(err)
			}
		}
		var limited *runtime.LimitedError
		if err := find(); !errors.As(err, &limited) || now.Add(limited.RetryAfter).Format(time.RFC3339) != c.ends {
			t.Fatalf("%s: %v, until %v, want until %s", c.zone, err, now.Add(limited.RetryAfter), c.ends)
		}
		now = now.Add(limited.RetryAfter - time.Microsecond)
		if err := find(); err == nil {
			t.Errorf("%s: a month begins early", c.zone)
		}
		now = now.Add(time.Microsecond)
		if err := find(); err != nil {
			t.Errorf("%s: %v in the next month", c.zone, err)
		}
	}
}

// A customer sees what it has used of its last three months, from one billing day to the next.
func TestBill(t *testing.T) {
	now := time.Date(2027, time.January, 31, 12, 0, 0, 0, time.UTC)
	limiter := runtime.New(runtime.NewMemoryStore(runtime.WithClock(func() time.Time { return now })), runtime.WithLogger(slog.New(slog.DiscardHandler)))
	search := NewRateLimitedSearch(index{new(atomic.Bool)}, limiter)
	ann := Customer{ID: "ann", Monthly: 8, PerSecond: 100, Zone: "Asia/Kolkata", BillingDay: 31}
	for _, used := range []int{5, 0, 8, 1} {
		for range used {
			if _, err := search.Find(t.Context(), ann, "x"); err != nil {
				t.Fatal(err)
			}
		}
		now = now.AddDate(0, 0, 30)
	}
	now = now.AddDate(0, 0, -30)
	usages, err := search.FindUsage(t.Context(), ann)
	if err != nil || len(usages) != 2 {
		t.Fatal(usages, err)
	}
	var bill []string
	for _, month := range usages[1].Past {
		bill = append(bill, fmt.Sprintf("%s to %s: %d", month.Start.Format(time.DateOnly), month.End.Format(time.DateOnly), month.Used))
	}
	want := []string{"2027-03-31 to 2027-04-30: 8", "2027-02-28 to 2027-03-31: 0", "2027-01-31 to 2027-02-28: 5"}
	if !slices.Equal(bill, want) || usages[1].Remaining != 7 {
		t.Errorf("got %q and %+v, want %q", bill, usages[1], want)
	}
}
