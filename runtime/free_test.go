package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// TestFreeOfMany has many callers at no cost share requests, and others who charge the key, and
// wants none to be counted, and all to be refused from a block on.
func TestFreeOfMany(t *testing.T) {
	client := ownRedis(t)
	limiter := onRedis(client)
	for name, rule := range blockingRules(10*time.Hour, 100) {
		rule.Block = time.Hour
		for _, callers := range []int{1, 2, 8, 256} {
			limit := rule.Limit(key(fmt.Sprint(callers)))
			var passed, charged atomic.Int64
			calls := func() {
				concurrently(callers, func(i int) {
					for range 4 {
						if _, err := limiter.Take(context.Background(), limit.WithCost(0)); err == nil {
							passed.Add(1)
						} else if !errors.Is(err, runtime.ErrLimited) {
							t.Error(err)
						}
						if i == 0 {
							if _, err := limiter.Take(context.Background(), limit); err == nil {
								charged.Add(1)
							}
						}
					}
				})
			}
			calls()
			equal(t, fmt.Sprintf("%s, %d callers: passed", name, callers), passed.Swap(0), int64(4*callers))
			equal(t, fmt.Sprintf("%s, %d callers: charged", name, callers), charged.Swap(0), 4)
			wantLeft(t, limiter, limit, 96)
			blockedBy(t, limiter, limit.WithCost(97))
			calls()
			equal(t, fmt.Sprintf("%s, %d callers: passed a block", name, callers), passed.Load()+charged.Load(), 0)
		}
	}
}

// TestFreeIsAsked wants Redis to be asked about calls at no cost where a key can be blocked or
// held, once by a process that remembers refusals, and nowhere else; and to write nothing for
// them.
func TestFreeIsAsked(t *testing.T) {
	client := ownRedis(t)
	count, limiter := counting(client), remembering(client, time.Hour)
	for name, r := range serverRules(time.Hour, 10) {
		taken(t, limiter, r.Limit(nil).WithCost(0))
		equal(t, name+": requests", count.scripts(), 0)
	}
	shadow := &runtime.Rule{Name: "shadow", Window: time.Hour, Max: 1, Block: time.Hour, Mode: runtime.ModeShadow}
	taken(t, limiter, shadow.Limit(nil).WithCost(0))
	equal(t, "of a shadow: requests", count.scripts(), 0)
	for name, r := range blockingRules(time.Hour, 10) {
		r.Block = time.Hour
		limit := r.Limit(key("k"))
		taken(t, limiter, r.Limit(key("other")).WithCost(0)) // the script is known from then on
		count.sent()
		takenBy(t, limiter, rule.SourceStore, limit.WithCost(0))
		equal(t, name+": requests", count.scripts(), 1)
		equal(t, name+": keys", client.DBSize(t.Context()).Val(), 0)
		taken(t, limiter, limit)
		state := client.Dump(t.Context(), bridge.LimiterOf(limiter).RedisKey(limit)).Val()
		takenBy(t, limiter, rule.SourceStore, limit.WithCost(0))
		if client.Dump(t.Context(), bridge.LimiterOf(limiter).RedisKey(limit)).Val() != state {
			t.Errorf("%s: a call at no cost has changed the key", name)
		}
		blockedBy(t, limiter, limit.WithCost(10))
		for _, source := range []rule.Source{rule.SourceStore, rule.SourceRecalled, rule.SourceRecalled, rule.SourceRecalled} {
			d, _ := refused(t, limiter, limit.WithCost(0))
			equal(t, name+": decided by", d.Source, source)
			if source == rule.SourceStore {
				count.scripts()
			}
		}
		equal(t, name+": requests", count.scripts(), 0)
		ok(t, client.FlushDB(t.Context()).Err())
		ok(t, limiter.Reset(t.Context(), limit))
	}
}
