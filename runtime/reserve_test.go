package runtime_test

import (
	"testing"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// A key with reservations, or what is owed, that has lost its expiry gets one by whatever comes
// next, or soon after.
func TestReservationsExpire(t *testing.T) {
	client := ownRedis(t)
	limiter := onRedis(client, atOnce)
	for _, declared := range []*runtime.Rule{
		{Name: "reserves", Window: 10 * time.Second, Max: 100, Reserve: 5 * time.Second},
		{Name: "carries", Window: 10 * time.Second, Max: 100, Debt: rule.DebtCarry},
		{Name: "month", Period: rule.Month, Max: 100, Reserve: 5 * time.Second, Debt: rule.DebtForgive},
	} {
		declared.Algorithm = runtime.FixedWindow
		limit := declared.Limit(key("k"))
		name := bridge.LimiterOf(limiter).RedisKey(limit)
		d := taken(t, limiter, limit.WithCost(10))
		expires := func(when string, act func()) {
			t.Helper()
			ok(t, client.Persist(t.Context(), name).Err())
			eventually(t, declared.Name+" has an expiry after "+when, func() bool {
				act()
				time.Sleep(10 * time.Millisecond)
				return client.PTTL(t.Context(), name).Val() > 0
			})
			lives := client.PTTL(t.Context(), name).Val()
			if r, err := limiter.Peek(t.Context(), limit); err != nil || lives > r.ResetAfter+2*time.Second || lives < r.ResetAfter {
				t.Errorf("%s: lives for %v after %s, and is whole after %v with %d left, %v", declared.Name, lives, when, r.ResetAfter, r.Remaining, err)
			}
		}
		expires("a refusal", func() { refused(t, limiter, limit.WithCost(100)) })
		expires("calls", func() { settled(t, limiter, taken(t, limiter, limit), 0) })
		settled(t, limiter, d)
	}
}
