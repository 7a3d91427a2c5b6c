package runtime_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// TestKeptKeys wants a key to live for as long as its counts are kept, also if somebody takes
// its expiry away, and one of a rule that keeps none to be no larger for it.
func TestKeptKeys(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := redistest.Start(t).Client(t)
	limiter := onRedis(client, atOnce)
	defer limiter.Close()
	for _, period := range []runtime.Period{runtime.Day, runtime.Week, runtime.Month, runtime.Year} {
		for _, keep := range []uint8{0, 1, 3, runtime.MaxKeep} {
			for _, reserve := range []time.Duration{0, time.Minute} {
				rule := &runtime.Rule{Name: fmt.Sprint(period, keep, reserve), Algorithm: runtime.FixedWindow, Period: period, Keep: keep, Reserve: reserve, Max: 4}
				limit := rule.Limit(key("k"))
				key := limiter.RedisKey(limit)
				lives := func(what string, d runtime.Decision) {
					t.Helper()
					want := d.ResetAfter + time.Duration(keep)*spec.Unit(period).Longest()
					if left := client.PTTL(ctx, key).Val(); left < want-5*time.Second || left > want+5*time.Second {
						t.Errorf("%s, %s: lives for %v, want %v", rule.Name, what, left, want)
					}
				}
				d := taken(t, limiter, limit.WithCost(2))
				lives("charged", d)
				settled(t, limiter, d, 1)
				lives("settled", d)
				d = taken(t, limiter, limit.WithCost(3))
				settled(t, limiter, d, 3)
				client.Persist(ctx, key)
				denied(t, limiter, limit)
				lives("denied", d)
				if reserve == 0 {
					equal(t, rule.Name+": bytes", client.StrLen(ctx, key).Val(), map[bool]int64{false: 37, true: 44}[keep > 0])
				}
			}
		}
	}
}

// TestPastOfAll wants what is kept of a key that an override admits nothing of, that has a
// lease, and in shadow mode; and nothing of rules that keep none.
func TestPastOfAll(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, time.November, 25, 12, 0, 0, 0, time.UTC)
	store := runtime.NewMemoryStore(runtime.WithClock(func() time.Time { return now }))
	before, limiter := runtime.New(store, quiet), runtime.New(store, quiet, overridden(runtime.Overrides{Rules: map[string]runtime.Override{
		"keys": {Keys: map[string]runtime.KeyOverride{"k": {Max: new(int64(0))}}},
	}}))
	defer before.Close()
	defer limiter.Close()
	rule := func(name string, keep uint8) *runtime.Rule {
		return &runtime.Rule{Name: name, Algorithm: runtime.FixedWindow, Period: runtime.Week, Keep: keep, Max: 10}
	}
	shadow, leased := rule("shadow", 3), rule("leased", 1)
	shadow.Mode, leased.Lease = runtime.ModeShadow, time.Second
	rules := []*runtime.Rule{rule("plain", 2), rule("keys", 2), shadow, leased, rule("none", 0)}
	var limits []runtime.Limit
	for i, r := range rules {
		limits = append(limits, r.Limit(key("k")))
		taken(t, before, limits[i].WithCost(int64(i+1)))
	}
	now = now.AddDate(0, 0, 7)
	usages, err := limiter.Usage(context.Background(), limits...)
	ok(t, err)
	if len(usages) != len(rules) {
		t.Fatalf("%+v", usages)
	}
	for i, u := range usages {
		if len(u.Past) != int(rules[i].Keep) || len(u.Past) > 0 && u.Past[0].Used != int64(i+1) {
			t.Errorf("%s: %+v", u.Rule, u)
		}
	}
	if u := usages[1]; u.RetryAfter != runtime.Never || u.Remaining != 0 || u.Limit != 0 || u.ResetAfter <= 0 {
		t.Errorf("with a max of 0: %+v", u)
	}
	if week := usages[0].Past[0]; week.Start.Format(time.RFC3339) != "2026-11-23T00:00:00Z" || week.End.Format(time.RFC3339) != "2026-11-30T00:00:00Z" {
		t.Errorf("%+v", week)
	}
}
