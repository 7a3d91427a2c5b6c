package runtime_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
)

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
