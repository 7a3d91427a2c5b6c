package runtime_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// TestWrongClocks has replicas whose clocks are wrong charge a limit together, of each
// period. They admit what one does, and agree on when the period ends.
func TestWrongClocks(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	wrong := []time.Duration{0, time.Second, -time.Minute, time.Hour, -12 * time.Hour, 24 * time.Hour, -24 * time.Hour, 40 * 24 * time.Hour, -30 * 365 * 24 * time.Hour}
	var limiters []*runtime.Limiter
	for _, by := range wrong {
		store := runtime.NewRedisStore(server.Client(t), patient, runtime.Mutate, runtime.Wall(func() int64 { return time.Now().Add(by).UnixMicro() }))
		limiters = append(limiters, runtime.New(store, runtime.WithFailurePolicy(runtime.FailClosed)))
	}
	for _, period := range []runtime.Period{runtime.Day, runtime.Week, runtime.Month, runtime.Year} {
		rule := &runtime.Rule{Name: "wrong clocks of a " + period.String(), Algorithm: runtime.FixedWindow, Period: period, Zone: "Pacific/Kiritimati", Max: 100}
		var wait sync.WaitGroup
		var mu sync.Mutex
		admitted, ends := int64(0), map[time.Time]bool{}
		for _, limiter := range limiters {
			wait.Go(func() {
				for range 30 {
					d, err := limiter.Take(context.Background(), rule.Limit(nil))
					if err != nil && !errors.Is(err, runtime.ErrLimited) {
						t.Error(err)
					}
					mu.Lock()
					ends[time.Now().Add(d.ResetAfter).Round(time.Minute)] = true
					if d.Allowed {
						admitted++
					}
					mu.Unlock()
				}
			})
		}
		wait.Wait()
		if admitted != rule.Max || len(ends) != 1 {
			t.Errorf("%v: %d admitted, want %d; ends %v", period, admitted, rule.Max, ends)
		}
	}
}

// TestWithPeriod has callers of one rule have zones and anchors of their own, and some that
// are none.
func TestWithPeriod(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, time.November, 25, 21, 0, 0, 0, time.UTC)
	store := runtime.NewMemoryStore(runtime.WithClock(func() time.Time { return now }))
	limiter := runtime.New(store, runtime.WithFailurePolicy(runtime.FailClosed), runtime.WithLogger(slog.New(slog.DiscardHandler)))
	month := &runtime.Rule{Name: "month", Algorithm: runtime.FixedWindow, Period: runtime.Month, Max: 3}
	week := &runtime.Rule{Name: "week", Algorithm: runtime.FixedWindow, Period: runtime.Week, Max: 3}
	day := &runtime.Rule{Name: "day", Algorithm: runtime.FixedWindow, Period: runtime.Day, Max: 3}
	for _, c := range []struct {
		name, zone string
		rule       *runtime.Rule
		anchor     int64
		ends       string // or empty: the key is invalid
	}{
		{"billed on the 28th", "America/New_York", month, 28, "2026-11-28T05:00:00Z"},
		{"billed on the 31st", "", month, 31, "2026-11-30T00:00:00Z"},
		{"from Sunday on", "UTC", week, int64(time.Sunday), "2026-11-29T00:00:00Z"},
		{"from Monday on", "Asia/Tokyo", week, int64(time.Monday), "2026-11-29T15:00:00Z"},
		{"a day", "Asia/Kathmandu", day, 0, "2026-11-26T18:15:00Z"},
		{"no billing day", "", month, 0, ""},
		{"no zone", "Mars/Olympus", month, 1, ""},
		{"no day", "", month, 32, ""},
	} {
		limit := c.rule.Limit(runtime.NewKey().AddString(c.name)).WithPeriod(c.zone, c.anchor)
		d, err := limiter.Take(context.Background(), limit.WithCost(2))
		if c.ends == "" {
			if !errors.Is(err, runtime.ErrInvalidKey) {
				t.Errorf("%s: got %+v, %v; want ErrInvalidKey", c.name, d, err)
			}
			continue
		}
		if ends := now.Add(d.ResetAfter).Format(time.RFC3339); err != nil || ends != c.ends {
			t.Errorf("%s: %v, %v; want the end at %s", c.name, ends, err, c.ends)
		}
		if err := limiter.Refund(context.Background(), d); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if d, err := limiter.Peek(context.Background(), limit); err != nil || d.Remaining != 3 {
			t.Errorf("%s: %+v, %v; want all of it back", c.name, d, err)
		}
	}
}

// TestWrongClockFirst has a replica with a wrong clock begin a period, which ends when it is
// to end by the clock of Redis all the same.
func TestWrongClockFirst(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	rule := &runtime.Rule{Name: "first", Algorithm: runtime.FixedWindow, Period: runtime.Day, Max: 5}
	for _, by := range []time.Duration{72 * time.Hour, -72 * time.Hour} {
		store := runtime.NewRedisStore(server.Client(t), patient, runtime.Mutate, runtime.Wall(func() int64 { return time.Now().Add(by).UnixMicro() }))
		limit := rule.Limit(runtime.NewKey().AddString(by.String()))
		d, err := runtime.New(store, runtime.WithFailurePolicy(runtime.FailClosed)).Take(context.Background(), limit)
		if err != nil || d.ResetAfter <= 0 || d.ResetAfter > 24*time.Hour {
			t.Errorf("%v off: %+v, %v", by, d, err)
		}
	}
}
