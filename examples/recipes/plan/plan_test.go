package plan

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/examples/recipes/internal/replica"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// A question makes calls of a customer, one after the other.
type question struct {
	Customer Customer
	Calls    int
	Fail     bool  // of the search itself
	Left     int64 // of the month, after that
}

type answer struct {
	Found   int
	Refused map[string]int // by rule
	Strange string
}

// An index finds nothing, or fails.
type index struct{ fails *bool }

func (i index) Find(context.Context, Customer, string) ([]string, error) {
	if *i.fails {
		return nil, errors.New("the index is down")
	}
	return nil, nil
}

func serve(client *redis.Client) (func(question) answer, *runtime.Limiter) {
	limiter := replica.Limiter(client, replica.Windows(replica.Year, "plan.second"))
	fails := false
	search := NewRateLimitedSearch(index{&fails}, limiter)
	return func(q question) answer {
		a := answer{Refused: map[string]int{}}
		fails = q.Fail
		for range q.Calls {
			_, err := search.Find(context.Background(), q.Customer, "x")
			var limited *runtime.LimitedError
			if err == nil {
				a.Found++
			} else if errors.As(err, &limited) {
				a.Refused[limited.Rule]++
			} else if !q.Fail {
				a.Strange = err.Error()
			}
		}
		for q.Fail && left(limiter, q.Customer) < q.Left { // refunds take a millisecond
			time.Sleep(time.Millisecond)
		}
		return a
	}, limiter
}

// left returns what a customer has left of its month.
func left(limiter *runtime.Limiter, c Customer) int64 {
	key := runtime.NewKey().AddString(c.ID)
	d, _ := limiter.Peek(context.Background(), searchFindLimit2.Limit(key).WithMax(c.Monthly).WithPeriod(c.Zone, int64(c.BillingDay)))
	return d.Remaining
}

func TestMain(m *testing.M) { replica.Main(m, serve) }

// What a customer sends too fast, or the index fails to answer, is nothing of its month, over
// all replicas.
func TestPlan(t *testing.T) {
	server := redistest.Start(t)
	replicas := replica.Start[question, answer](t, server.Addr, 2)
	ann := Customer{ID: "ann", Monthly: 8, PerSecond: 5, Zone: "Asia/Kolkata", BillingDay: 31}
	found, fast := 0, 0
	for _, a := range replica.All(replicas, question{Customer: ann, Calls: 10}) {
		found, fast = found+a.Found, fast+a.Refused["plan.second"]
		if a.Strange != "" {
			t.Error(a.Strange)
		}
	}
	if found != 5 || fast != 15 {
		t.Errorf("%d found and %d refused, want 5 and 15", found, fast)
	}
	ann.PerSecond = 100 // a second later, or a larger plan
	replicas[0].Ask(question{Customer: ann, Calls: 2, Fail: true, Left: 3})
	found, month := 0, 0
	for _, a := range replica.All(replicas, question{Customer: ann, Calls: 10}) {
		found, month = found+a.Found, month+a.Refused["plan.month"]
	}
	if found != 3 || month != 17 {
		t.Errorf("%d found and %d refused, want what was left of the month, 3, and 17", found, month)
	}
}

// A month ends on the billing day of each customer, where that lives.
func TestBillingDay(t *testing.T) {
	now := time.Date(2027, time.February, 27, 17, 0, 0, 0, time.UTC)
	limiter := runtime.New(runtime.NewMemoryStore(runtime.WithClock(func() time.Time { return now })), runtime.WithLogger(slog.New(slog.DiscardHandler)))
	search := NewRateLimitedSearch(index{new(bool)}, limiter)
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
	search := NewRateLimitedSearch(index{new(bool)}, limiter)
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
