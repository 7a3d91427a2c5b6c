package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// testFree wants calls of cost 0 to be refused on every replica where all calls of a key are:
// while it is blocked or held, or an override admits nobody. Elsewhere they pass and charge
// nothing, however little room there is.
func testFree(t *testing.T, replica replicas) {
	nobody := rule.Override{Keys: map[string]rule.KeyOverride{"k": {Max: new(int64(0))}}}
	plain := map[string]*runtime.Rule{}
	rules := blockingRules(10*time.Hour, 10)
	for name := range rules {
		plain[name] = rules[name]
	}
	plain["permits"] = serverRules(10*time.Hour, 10)["permits"]
	overrides := runtime.Overrides{Rules: map[string]rule.Override{}}
	for name := range plain {
		overrides.Rules[name] = nobody
	}
	free, stopped := replica(), replica(overridden(overrides))
	for name, r := range plain {
		t.Run(name+" overridden", func(t *testing.T) {
			beside := rules["fixed"].Limit(key("beside"))
			freeWant(t, stopped, r.Limit(key("k")), beside, false)
			freeWant(t, stopped, r.Limit(key("other")), beside, true)
			freeWant(t, free, r.Limit(key("k")), beside, true)
		})
	}
	for name := range rules {
		for _, way := range []string{"block", "hold"} {
			t.Run(name+" "+way, func(t *testing.T) {
				r := *rules[name]
				r.Hold = true
				r.Prefix = way + ":" + r.Prefix
				if way == "block" {
					r.Block, r.Hold = time.Hour, false
				}
				limit, beside := r.Limit(key("k")), r.Limit(key("beside"))
				freeWant(t, free, limit, beside, true)
				charged := taken(t, free, limit.WithCost(4))
				taken(t, free, limit.WithCost(6))
				settled(t, free, charged, 30)
				freeWant(t, free, limit, beside, true)
				if way == "block" {
					blockedBy(t, free, limit)
				} else {
					ok(t, free.Hold(t.Context(), limit, time.Hour))
				}
				freeWant(t, free, limit, beside, false)
				freeWant(t, replica(), limit, beside, false)
				if way == "block" {
					ok(t, free.Reset(t.Context(), limit))
				} else {
					ok(t, free.Release(t.Context(), limit))
				}
				freeWant(t, free, limit, beside, true)
			})
		}
	}
}

// freeWant has a call of cost 0 decided in all ways, and wants it to pass or to be refused.
func freeWant(t *testing.T, l *runtime.Limiter, limit, beside runtime.Limit, passes bool) {
	t.Helper()
	ctx, left := context.Background(), left(t, l, beside)
	limit = limit.WithCost(0)
	check := func(way string, d runtime.Decision, err error) {
		t.Helper()
		if d.Allowed != passes || passes && (err != nil || d.RetryAfter != 0 || d.Blocked) || !passes && d.RetryAfter <= 0 || !passes && way != "peek" && !errors.Is(err, runtime.ErrLimited) {
			t.Errorf("%s: got %+v, %v; want it admitted: %v", way, d, err, passes)
		}
	}
	d, err := l.Peek(ctx, limit)
	check("peek", d, err)
	d, err = l.Take(ctx, limit)
	check("take", d, err)
	ok(t, l.Settle(ctx, d, 7)) // as nothing was charged, to no effect
	refunded(t, l, d)
	refunded(t, l, d)
	for _, o := range l.TakeEach(ctx, limit, beside.WithCost(0), limit)[:1] {
		check("each", o.Decision, o.Err)
	}
	d, err = l.Take(ctx, beside, limit)
	check("beside another", d, err)
	wantLeft(t, l, beside, map[bool]int64{true: left - 1, false: left}[passes])
	refunded(t, l, d)
	wantLeft(t, l, beside, left)
}

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
		refusedBy(t, limiter, rule.SourceStore, limit.WithCost(0))
		count.scripts()
		for range 3 {
			refusedBy(t, limiter, rule.SourceRecalled, limit.WithCost(0))
		}
		equal(t, name+": requests", count.scripts(), 0)
		ok(t, client.FlushDB(t.Context()).Err())
		ok(t, limiter.Reset(t.Context(), limit))
	}
}

// TestFreeUndecided wants the failure policy to decide about a call at no cost that nobody knows
// of whether its key is blocked, and this process to remember blocks of its own.
func TestFreeUndecided(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	rule := runtime.Rule{Name: "r", Window: time.Hour, Max: 1, Block: time.Hour}
	server.Kill()
	for policy, admitted := range map[runtime.FailurePolicy]bool{runtime.FailOpen: true, runtime.FailClosed: false, runtime.FailLocal: true} {
		rule := rule
		rule.Fail = policy
		limiter := runtime.New(runtime.NewRedisStore(server.Client(t)), quiet)
		limit := rule.Limit(key("k"))
		d, err := limiter.Take(t.Context(), limit.WithCost(0))
		if d.Allowed != admitted || errors.Is(err, runtime.ErrUnavailable) == admitted {
			t.Errorf("%v: got %+v, %v", policy, d, err)
		}
		if policy == runtime.FailLocal {
			taken(t, limiter, limit)
			blockedBy(t, limiter, limit)
			blockedBy(t, limiter, limit.WithCost(0))
		}
	}
}
