package runtime_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// TestWithPeriod has callers of one rule have zones and anchors of their own, and some that
// are none.
func TestWithPeriod(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, time.November, 25, 21, 0, 0, 0, time.UTC)
	limiter := runtime.New(runtime.NewMemoryStore(runtime.WithClock(func() time.Time { return now })), quiet, closed)
	for _, c := range []struct {
		name, zone string
		period     rule.Period
		anchor     int64
		ends       string // or empty: the key is invalid
	}{
		{"billed on the 28th", "America/New_York", rule.Month, 28, "2026-11-28T05:00:00Z"},
		{"billed on the 31st", "", rule.Month, 31, "2026-11-30T00:00:00Z"},
		{"from Sunday on", "UTC", rule.Week, int64(time.Sunday), "2026-11-29T00:00:00Z"},
		{"from Monday on", "Asia/Tokyo", rule.Week, int64(time.Monday), "2026-11-29T15:00:00Z"},
		{"a day", "Asia/Kathmandu", rule.Day, 0, "2026-11-26T18:15:00Z"},
		{"no billing day", "", rule.Month, 0, ""},
		{"no zone", "Mars/Olympus", rule.Month, 1, ""},
		{"no day", "", rule.Month, 32, ""},
	} {
		r := &runtime.Rule{Name: c.period.String(), Algorithm: runtime.FixedWindow, Period: c.period, Max: 3, Invalid: rule.InvalidRefuse}
		limit := r.Limit(key(c.name)).WithPeriod(c.zone, c.anchor)
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

// TestLogCost refuses what would be too much work for Redis, by the bounds of package plan.
func TestLogCost(t *testing.T) {
	t.Parallel()
	const most = rule.MaxLogCost
	log := perHour(10 * most)
	shadow, adaptive := *log, *log
	shadow.Mode, adaptive.Adaptive = runtime.ModeShadow, always(0.5)
	for name, test := range map[string]struct {
		limit runtime.Limit
		want  error
	}{
		"one more":            {log.Limit(nil).WithCost(most + 1), runtime.ErrInvalidLimit},
		"more than all of it": {log.Limit(nil).WithCost(10*most + 1), runtime.ErrCostExceedsLimit},
		"a max of the call's": {log.Limit(nil).WithMax(most + 1).WithCost(most + 1), runtime.ErrInvalidLimit},
		"more than its max":   {log.Limit(nil).WithMax(most).WithCost(most + 1), runtime.ErrCostExceedsLimit},
		"shadow":              {shadow.Limit(nil).WithCost(most + 1), nil}, // it is left out, and harms no call
		"adaptive":            {adaptive.Limit(nil).WithCost(most + 1), runtime.ErrInvalidLimit},
	} {
		_, peeked := inMemory().Peek(t.Context(), test.limit)
		d, err := inMemory().Take(t.Context(), test.limit)
		o := inMemory().TakeEach(t.Context(), test.limit)[0]
		wantError(t, name, err, test.want)
		wantError(t, name+", in a batch", o.Err, test.want)
		equal(t, name+": allowed", [2]bool{d.Allowed, o.Allowed}, [2]bool{test.want == nil, test.want == nil})
		if name != "shadow" && test.want != runtime.ErrCostExceedsLimit {
			wantError(t, name+": peek", peeked, test.want)
		}
	}
	const want = `invalid rate limit: rule "r": cost 5000 is above 250, the most that one call may charge to a sliding-log: ` +
		`count with a sliding-counter or a token-bucket, or charge it in several calls`
	if _, err := inMemory().Take(t.Context(), log.Limit(nil).WithMax(5000).WithCost(5000)); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	// A cost that fits only since the max was scaled up is refused.
	scaled := perHour(most)
	scaled.Adaptive = always(2)
	limiter, limit := inMemory(), scaled.Limit(nil).WithCost(most+1)
	defer limiter.Close()
	refusedAs(t, limiter, runtime.ErrCostExceedsLimit, limit)
	adapt(t, limiter, scaled, 2)
	refusedAs(t, limiter, runtime.ErrInvalidLimit, limit)
}
