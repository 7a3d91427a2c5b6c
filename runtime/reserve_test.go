package runtime_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// A call that outlasts its period is not charged to the next one, although its renewal finds
// no key: that has expired, and is not lost.
func TestReservationsOutlastTheirKey(t *testing.T) {
	client := ownRedis(t)
	limiter := onRedis(client)
	rule := reserveRule(10)
	rule.Window, rule.Reserve = time.Second, 900*time.Millisecond // renewed every 300 ms
	limit := rule.Limit(key("k"))
	d := taken(t, limiter, limit.WithCost(4))
	begin := time.Now()
	eventually(t, "the key expires", func() bool { return client.Exists(t.Context(), bridge.LimiterOf(limiter).RedisKey(limit)).Val() == 0 })
	if lived := time.Since(begin); lived < rule.Window-10*time.Millisecond {
		t.Errorf("the key lived %v", lived)
	}
	for end := time.Now().Add(rule.Reserve); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		wantLeft(t, limiter, limit, 10)
	}
	settled(t, limiter, d, 5)
	wantLeft(t, limiter, limit, 9) // what it cost beyond its charge
}

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

// testReservationsOfManyCallers wants calls of many callers never to use more than the budget,
// and that to have what they cost at the end.
func testReservationsOfManyCallers(t *testing.T, replica replicas) {
	limiters := []*runtime.Limiter{replica(), replica()}
	limit := reserveRule(600).Limit(key("k"))
	for _, callers := range []int{1, 2, 8, 64} {
		var cost, running atomic.Int64
		concurrently(callers, func(i int) {
			limiter := limiters[i%2]
			for n := range int64(40) {
				d, err := limiter.Take(t.Context(), limit.WithCost(5))
				if err != nil {
					continue
				}
				if now := running.Add(5); now+cost.Load() > 600+5*int64(callers) {
					t.Errorf("%d reserved and %d used", now, cost.Load())
				}
				cost.Add(n % 4)
				running.Add(-5)
				if n%2 == 0 {
					limiter.SettleLater(t.Context(), d, n%4)
				} else {
					settled(t, limiter, d, n%4)
				}
			}
		})
		eventually(t, "all is settled", func() bool { return left(t, limiters[0], limit) == 600-cost.Load() })
		ok(t, limiters[0].Reset(t.Context(), limit))
	}
}
