package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// wrongBy returns a limiter of a replica whose clock is wrong.
func wrongBy(t *testing.T, server *redistest.Server, by time.Duration) *runtime.Limiter {
	return onRedis(server.Client(t), runtime.Wall(func() int64 { return time.Now().Add(by).UnixMicro() }))
}

// TestWrongClocks has replicas whose clocks are wrong charge a limit together, of each
// period. They admit what one does, and agree on when the period ends.
func TestWrongClocks(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	const day = 24 * time.Hour
	var limiters []*runtime.Limiter
	for _, by := range []time.Duration{0, time.Second, -time.Minute, time.Hour, -12 * time.Hour, day, -day, 40 * day, -30 * 365 * day} {
		limiters = append(limiters, wrongBy(t, server, by))
	}
	for _, period := range []runtime.Period{runtime.Day, runtime.Week, runtime.Month, runtime.Year} {
		limit := (&runtime.Rule{Name: "wrong clocks of a " + period.String(), Algorithm: runtime.FixedWindow, Period: period, Zone: "Pacific/Kiritimati", Max: 100}).Limit(nil)
		var admitted atomic.Int64
		var ends recorder[time.Time]
		concurrently(len(limiters), func(i int) {
			for range 30 {
				d, err := limiters[i].Take(context.Background(), limit)
				if err == nil {
					admitted.Add(1)
				} else if !errors.Is(err, runtime.ErrLimited) {
					t.Error(err)
				}
				ends.add(time.Now().Add(d.ResetAfter).Round(time.Minute))
			}
		})
		equal(t, fmt.Sprint(period, ": admitted"), admitted.Load(), 100)
		for _, end := range ends.all() {
			equal(t, fmt.Sprint(period, ": ends"), end, ends.all()[0])
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
		d := taken(t, wrongBy(t, server, by), rule.Limit(key(by.String())))
		if d.ResetAfter <= 0 || d.ResetAfter > 24*time.Hour {
			t.Errorf("%v off: %+v", by, d)
		}
	}
}

// TestWithPeriod has callers of one rule have zones and anchors of their own, and some that
// are none.
func TestWithPeriod(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, time.November, 25, 21, 0, 0, 0, time.UTC)
	limiter := runtime.New(runtime.NewMemoryStore(runtime.WithClock(func() time.Time { return now })), quiet, closed)
	for _, c := range []struct {
		name, zone string
		period     runtime.Period
		anchor     int64
		ends       string // or empty: the key is invalid
	}{
		{"billed on the 28th", "America/New_York", runtime.Month, 28, "2026-11-28T05:00:00Z"},
		{"billed on the 31st", "", runtime.Month, 31, "2026-11-30T00:00:00Z"},
		{"from Sunday on", "UTC", runtime.Week, int64(time.Sunday), "2026-11-29T00:00:00Z"},
		{"from Monday on", "Asia/Tokyo", runtime.Week, int64(time.Monday), "2026-11-29T15:00:00Z"},
		{"a day", "Asia/Kathmandu", runtime.Day, 0, "2026-11-26T18:15:00Z"},
		{"no billing day", "", runtime.Month, 0, ""},
		{"no zone", "Mars/Olympus", runtime.Month, 1, ""},
		{"no day", "", runtime.Month, 32, ""},
	} {
		rule := &runtime.Rule{Name: c.period.String(), Algorithm: runtime.FixedWindow, Period: c.period, Max: 3}
		limit := rule.Limit(key(c.name)).WithPeriod(c.zone, c.anchor)
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
		refunded(t, limiter, d)
		wantLeft(t, limiter, limit, 3)
	}
}
