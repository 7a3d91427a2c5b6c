package script_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/storetest"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rule"
)

// TestLifetime charges keys at many distances in time, and so often that most charges leave
// the expiry alone. It wants each to live until its limit is whole again and for at most a
// second more, whether the charge has set the expiry or has left it as it was.
func TestLifetime(t *testing.T) {
	t.Parallel()
	rules := map[string]*runtime.Rule{}
	for busy, window := range map[string]time.Duration{"": 10 * time.Second, ", busy": 200 * time.Millisecond} {
		for name, rule := range storetest.WaysOf(window, 1000) {
			rules[name+busy] = rule
		}
	}
	eachLog(t, rules, nil, func(t *testing.T, log *log, rule *runtime.Rule) {
		for i := range effort.Choose(40, 100) {
			step, cost := 7*time.Millisecond, int64(1)
			if often := rule.Window < time.Second; !often {
				// From steps well within the slack to some of many seconds.
				step = time.Duration(1+i*i*i%977) * time.Duration(1+i%13) * time.Millisecond
				if i%20 == 8 || i%20 == 9 {
					step = time.Millisecond
				}
				if i%20 == 7 {
					cost = 400
				}
			}
			log.subject.Advance(step)
			c := must(t, log.subject.Store, take, single(rule, log.key, cost))
			if !c.Allowed {
				continue
			}
			if cost == 1 && step == time.Millisecond && i%20 == 8 { // what is left is whole again long before
				c.Cost = 401
				settledCharge(t, log.subject.Store, c)
				continue
			}
			between(t, fmt.Sprintf("charge %d: lives on when it is whole again for", i), log.lives()-c.ResetAfter, 0, time.Second)
		}
	})
}

// TestRaisedMember charges a key whose only event has left the window, and whose member was
// raised above the time: the charge sets the expiry of what is a new key.
func TestRaisedMember(t *testing.T) {
	t.Parallel()
	rule := storetest.WaysOf(10*time.Second, 5)["log zset"]
	log := newLog(t, redistest.Start(t).Client(t))
	raised := log.subject.Now() + rule.Window.Microseconds() + 1_000_001
	ok(t, log.client.ZAdd(t.Context(), log.key, redis.Z{Score: float64(log.subject.Now()), Member: raised}).Err())
	log.subject.Advance(rule.Window + time.Second)
	must(t, log.subject.Store, take, single(rule, log.key, 1))
	between(t, "expires in", log.lives(), rule.Window, rule.Window+time.Second)
}

// TestRaisedWindow raises a window while a key is in use, and wants the key to outlive what the
// longer window counts: after a charge, and after a refusal of a key that expires too early.
func TestRaisedWindow(t *testing.T) {
	t.Parallel()
	only := func(r *runtime.Rule) bool { return !layered(r) } // whose keys name the window
	eachLog(t, storetest.WaysOf(10*time.Second, 2), only, func(t *testing.T, log *log, rule *runtime.Rule) {
		longer := *rule
		longer.Window = time.Hour
		log.take(rule, 1, 1)
		outlives := func(r terms.Result) {
			t.Helper()
			between(t, "expires in", log.lives(), r.ResetAfter-time.Second, r.ResetAfter+time.Second)
		}
		r := log.take(&longer, 1, 0)
		if !stored(rule) { // a log may leave its expiry alone for 0.8 seconds
			outlives(r)
		}
		log.client.PExpireAt(t.Context(), log.key, time.UnixMicro(log.subject.Now()).Add(11*time.Second))
		r = log.decide(take, &longer, 1)
		equal(t, "allowed", r.Allowed, false)
		outlives(r)
	})
}

// onlyKey returns the one key with a prefix.
func onlyKey(t *testing.T, client *redis.Client, prefix string) string {
	t.Helper()
	keys := client.Keys(t.Context(), prefix+"*").Val()
	if len(keys) != 1 {
		t.Fatalf("keys %q, want one", keys)
	}
	return keys[0]
}

// TestExpiry wants every key to expire, at most a window and a second after its last charge. A
// key that has lost its expiry gets one by the next call, be it admitted or refused.
func TestExpiry(t *testing.T) {
	client := ownRedis(t)
	limiter := newLimiter(client)
	for name, r := range storetest.WaysOf(10*time.Second, 1000) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()                          // a part of each is waiting
			some, most := int64(300), int64(1000) // does not fit any more
			if stored(r) {
				r.Max, some, most = 400, 150, rule.MaxLogCost
			}
			limit := r.Limit(key("k"))
			longest := r.Window + time.Second
			if isCounter(r) {
				longest += r.Window / 7 // the last event counts until its bucket has left
			} else if isBucket(r) {
				longest = r.Window/2 + time.Second // it holds half of what it can
			}
			lives := func() time.Duration { return client.PTTL(t.Context(), onlyKey(t, client, r.Prefix)).Val() }
			expires := func(when string) {
				t.Helper()
				if ttl := lives(); ttl <= 0 || ttl > longest {
					t.Fatalf("%s: expires in %v, want at most %v", when, ttl, longest)
				}
			}
			taken(t, limiter, limit.WithCost(100))
			expires("admitted")
			taken(t, limiter, limit.WithCost(100))
			expires("admitted again")
			refused(t, limiter, limit.WithCost(most))
			expires("refused")
			client.Persist(t.Context(), onlyKey(t, client, r.Prefix))
			taken(t, limiter, limit.WithCost(some))
			// A log may leave its expiry alone for up to 0.8 seconds.
			for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline) && lives() < 0; time.Sleep(20 * time.Millisecond) {
				taken(t, limiter, limit)
			}
			expires("healed by an admitted call")
			client.Persist(t.Context(), onlyKey(t, client, r.Prefix))
			refused(t, limiter, limit.WithCost(most))
			expires("healed by a refused call")
			between(t, "healed to expire when its events have left, in", lives(), 2*time.Second, longest)
		})
	}
}

// TestKeptKeys wants a key to live for as long as its counts are kept, also if somebody takes
// its expiry away, and one of a rule that keeps none to be no larger for it.
func TestKeptKeys(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := redistest.Start(t).Client(t)
	limiter := newLimiter(client)
	defer limiter.Close()
	for _, period := range []rule.Period{rule.Day, rule.Week, rule.Month, rule.Year} {
		for _, keep := range []uint8{0, 1, 3, rule.MaxKeep} {
			for _, reserve := range []time.Duration{0, time.Minute} {
				r := &runtime.Rule{Name: fmt.Sprint(period, keep, reserve), Algorithm: runtime.FixedWindow, Period: period, Keep: keep, Reserve: reserve, Max: 4}
				limit := r.Limit(key("k"))
				key := bridge.LimiterOf(limiter).RedisKey(limit)
				lives := func(what string, d runtime.Decision) {
					t.Helper()
					want := d.ResetAfter + time.Duration(keep)*spec.Unit(period).Longest()
					if left := client.PTTL(ctx, key).Val(); left < want-5*time.Second || left > want+5*time.Second {
						t.Errorf("%s, %s: lives for %v, want %v", r.Name, what, left, want)
					}
				}
				d := taken(t, limiter, limit.WithCost(2))
				lives("charged", d)
				settled(t, limiter, d, 1)
				lives("settled", d)
				d = taken(t, limiter, limit.WithCost(3))
				settled(t, limiter, d, 3)
				client.Persist(ctx, key)
				refused(t, limiter, limit)
				lives("refused", d)
				if reserve == 0 {
					equal(t, r.Name+": bytes", client.StrLen(ctx, key).Val(), map[bool]int64{false: 37, true: 51}[keep > 0])
				}
			}
		}
	}
}
