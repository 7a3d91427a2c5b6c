package runtime_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

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
// key that has lost its expiry gets one by the next call, be it admitted or denied.
func TestExpiry(t *testing.T) {
	client := ownRedis(t)
	limiter := onRedis(client, atOnce)
	for name, rule := range serverRules(10*time.Second, 1000) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()                          // a part of each is waiting
			some, most := int64(300), int64(1000) // does not fit any more
			if stored(rule) {
				rule.Max, some, most = 400, 150, runtime.MaxLogCost
			}
			limit := rule.Limit(key("k"))
			longest := rule.Window + time.Second
			switch {
			case isCounter(rule):
				longest += rule.Window / 7 // the last event counts until its bucket has left
			case isBucket(rule):
				longest = rule.Window/2 + time.Second // it holds half of what it can
			}
			lives := func() time.Duration { return client.PTTL(t.Context(), onlyKey(t, client, rule.Prefix)).Val() }
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
			denied(t, limiter, limit.WithCost(most))
			expires("denied")
			client.Persist(t.Context(), onlyKey(t, client, rule.Prefix))
			taken(t, limiter, limit.WithCost(some))
			// A log may leave its expiry alone for up to 0.8 seconds.
			for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline) && lives() < 0; time.Sleep(20 * time.Millisecond) {
				taken(t, limiter, limit)
			}
			expires("healed by an admitted call")
			client.Persist(t.Context(), onlyKey(t, client, rule.Prefix))
			denied(t, limiter, limit.WithCost(most))
			expires("healed by a denied call")
			between(t, "healed to expire when its events have left, in", lives(), 2*time.Second, longest)
		})
	}
}

// TestOutOfMemory wants a Redis that refuses writes to have made none.
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := redistest.Start(t).Client(t)
	limiter := onRedis(client)
	rules := serverRules(1000*time.Hour, 10_000) // no bucket gains one meanwhile
	for _, rule := range rules {
		taken(t, limiter, rule.Limit(nil).WithCost(3))
	}
	dump := func() map[string]string {
		state := map[string]string{}
		for _, key := range client.Keys(ctx, "*").Val() {
			state[key] = client.Dump(ctx, key).Val()
		}
		return state
	}
	before := dump()
	equal(t, "keys", len(before), len(rules))
	client.ConfigSet(ctx, "maxmemory-policy", "noeviction")
	ok(t, client.ConfigSet(ctx, "maxmemory", "1").Err())
	var all []runtime.Limit
	errs := map[string]error{}
	for name, rule := range rules {
		if len(all) < runtime.MaxLimits {
			all = append(all, rule.Limit(nil))
		}
		_, errs[name] = limiter.Take(ctx, rule.Limit(nil).WithCost(runtime.MaxLogCost))
		wantLeft(t, limiter, rule.Limit(nil), 9_997)
	}
	_, errs["several limits"] = limiter.Take(ctx, all...)
	for i, o := range limiter.TakeEach(ctx, all...) {
		errs[fmt.Sprint("a batch, ", i)] = o.Err
	}
	for name, err := range errs {
		wantError(t, name, err, runtime.ErrUnavailable)
	}
	same(t, "state", before, dump())
	client.ConfigSet(ctx, "maxmemory", "0")
	for name, rule := range rules {
		d := taken(t, limiter, rule.Limit(nil).WithCost(runtime.MaxLogCost))
		equal(t, name+", with memory again: left", d.Remaining, 9_997-runtime.MaxLogCost)
	}
}

// TestBytesPerEvent wants events to take the memory that is promised, beyond
// what the key takes with the first one.
func TestBytesPerEvent(t *testing.T) {
	client := ownRedis(t)
	limiter := onRedis(client)
	for _, test := range []struct {
		name   string
		rule   runtime.Rule
		events int
		cost   int64
		most   float64 // bytes an event; 0: only report
	}{
		{"packed", runtime.Rule{Storage: runtime.StoragePacked}, 10_000, 1, 8.5},
		{"packed in slices", runtime.Rule{Storage: runtime.StoragePacked, Resolution: time.Second}, 10_000, 1, 8.5},
		{"packed, large cost", runtime.Rule{Storage: runtime.StoragePacked}, 10_001, runtime.MaxLogCost, 8.5},
		{"packed, few", runtime.Rule{Storage: runtime.StoragePacked}, 64, 1, 12},
		{"zset", runtime.Rule{}, 128, 1, 24},
		{"zset, large cost", runtime.Rule{}, 128, 64, 24},
		{"zset in slices", runtime.Rule{Resolution: time.Second}, 128, 1, 24},
		{"half a zset", runtime.Rule{}, 64, 1, 24},
		{"large zset", runtime.Rule{}, 10_000, 1, 0},
		{"counter", runtime.Rule{Algorithm: runtime.SlidingCounter}, 10_000, 1, 1},
		{"fixed window", runtime.Rule{Algorithm: runtime.FixedWindow}, 10_000, 1, 0.1},
		{"token bucket", runtime.Rule{Algorithm: runtime.TokenBucket}, 10_000, 1, 0.1},
	} {
		rule := test.rule
		rule.Window, rule.Max, rule.Prefix = time.Hour, int64(test.events)+1, test.name+":"
		used := func() int64 {
			// 0: look at every element, not at a sample.
			n, err := client.MemoryUsage(t.Context(), onlyKey(t, client, rule.Prefix), 0).Result()
			ok(t, err)
			return n
		}
		taken(t, limiter, rule.Limit(nil))
		empty := used()
		limits := make([]runtime.Limit, (test.events-1)/int(test.cost))
		for i := range limits {
			limits[i] = rule.Limit(nil).WithCost(test.cost)
		}
		for batch := range slices.Chunk(limits, 100) {
			for _, o := range limiter.TakeEach(t.Context(), batch...) {
				if o.Err != nil {
					t.Fatal(o.Err)
				}
			}
		}
		events := 1 + len(limits)*int(test.cost)
		perEvent := float64(used()-empty) / float64(events-1)
		t.Logf("%-16s %6d events: %6.2f bytes an event, %5d in all, %s", test.name, events, perEvent, used(),
			client.ObjectEncoding(t.Context(), onlyKey(t, client, rule.Prefix)).Val())
		if test.most > 0 && perEvent > test.most {
			t.Errorf("%s: %.1f bytes an event, want at most %v", test.name, perEvent, test.most)
		}
	}
}
