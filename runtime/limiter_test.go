package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rawstore"
	"github.com/rategen/rategen/runtime/rule"
)

// Nothing at all is no reason to panic.
func TestEmptyCalls(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	limiters := withoutStore(closed, runtime.WithObserver(nil))
	limiters["memory"], limiters["no cap"] = inMemory(), inMemory(runtime.WithProcessCap(nil))
	limiters["capped"] = inMemory(runtime.WithProcessCap(&runtime.Rule{Name: "process", Window: time.Hour, Max: 100}))
	for name, limiter := range limiters {
		taken(t, limiter)
		if d, err := limiter.Peek(ctx); err != nil || !d.Allowed {
			t.Errorf("%s: peek: %+v, %v", name, d, err)
		}
		equal(t, name+": outcomes of none", len(limiter.TakeEach(ctx)), 0)
		refusedAs(t, limiter, runtime.ErrInvalidLimit, runtime.Limit{}.WithCost(1))
		for _, nameless := range []runtime.Limit{{}, (&runtime.Rule{Window: time.Hour, Max: 1}).Limit(nil)} {
			refusedAs(t, limiter, runtime.ErrInvalidLimit, perHour(1).Limit(nil), nameless)
			wantError(t, name+": reset", limiter.Reset(ctx, nameless), runtime.ErrInvalidLimit)
		}
		d, _ := limiter.Take(ctx, perHour(100).Limit(nil))
		for _, n := range []int{0, 1, 2 * rule.MaxLimits} { // costs for more limits than there are
			if err := limiter.Settle(ctx, d, make([]int64, n)...); err != nil && n < 2 {
				t.Errorf("%s: settle: %v", name, err)
			}
		}
	}
	store := rawstore.Wrap(runtime.NewMemoryStore())
	for _, calls := range [][]rawstore.Call{nil, {}, {{}}, {{}, {Charges: []rawstore.Charge{}}}} {
		ok(t, errors.Join(store.Take(ctx, calls), store.Peek(ctx, calls)))
	}
	ok(t, errors.Join(store.Settle(ctx, nil), store.Reset(ctx, nil)))
}

// A message tells the time to wait where it has the verb, rounded up and never 0, and
// everything else in it stays.
func TestMessageText(t *testing.T) {
	never := runtime.ErrCostExceedsLimit.Error()
	for _, c := range []struct {
		message string
		after   time.Duration
		want    string
	}{
		{"wait {retry_after}", 0, "wait 1s"},
		{"wait {retry_after}", time.Nanosecond, "wait 1s"},
		{"wait {retry_after}", time.Second + 1, "wait 2s"},
		{"wait {retry_after}", 59*time.Second + 1, "wait 1m"},
		{"wait {retry_after}", 90 * time.Second, "wait 1m30s"},
		{"wait {retry_after}", time.Hour, "wait 1h"},
		{"wait {retry_after}", time.Hour + time.Second, "wait 1h0m1s"},
		{"wait {retry_after}", 10 * time.Minute, "wait 10m"},
		{"wait {retry_after}", rule.MaxWindow, "wait 8784h"},
		{"{retry_after}, then {retry_after}", 3 * time.Second, "3s, then 3s"},
		{"wait {retry_after}", runtime.Never, never},
		{"100% %s {} {retry_after", runtime.Never, "100% %s {} {retry_after"},
		{"", time.Second, ""},
	} {
		equal(t, fmt.Sprintf("%q after %v", c.message, c.after), runtime.MessageText(c.message, c.after), c.want)
	}
	r := &runtime.Rule{Name: "x", Window: time.Hour, Max: 0, Message: "wait {retry_after}"}
	if _, err := runtime.New(runtime.NewMemoryStore()).Take(t.Context(), r.Limit(nil)); err == nil || err.Error() != never {
		t.Errorf("an error's text is %v", err)
	}
}
