package runtime_test

import (
	"context"
	"errors"
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
	keys := client.Keys(context.Background(), prefix+"*").Val()
	if len(keys) != 1 {
		t.Fatalf("keys %q, want one", keys)
	}
	return keys[0]
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	limiter := onRedis(client, atOnce)
	for name, rule := range serverRules(10*time.Second, 1000) {
		some, most := int64(300), int64(1000) // does not fit any more
		if stored(rule) {
			rule.Max, some, most = 400, 150, runtime.MaxLogCost
		}
		limit := rule.Limit(key("k"))
		longest := rule.Window + time.Second
		if rule.Algorithm == runtime.SlidingCounter {
			longest += rule.Window / 7 // the last event counts until its bucket has left
		}
		if rule.Algorithm == runtime.TokenBucket || rule.Algorithm == runtime.LeakyBucket {
			longest = rule.Window/2 + time.Second // it holds half of what it can
		}
		expires := func(when string) {
			t.Helper()
			ttl := client.PTTL(t.Context(), onlyKey(t, client, rule.Prefix)).Val()
			if ttl <= 0 || ttl > longest {
				t.Fatalf("%s, %s: expires in %v, want at most %v", name, when, ttl, longest)
			}
		}
		take := func(cost int64, admitted bool) {
			t.Helper()
			if _, err := limiter.Take(t.Context(), limit.WithCost(cost)); (err == nil) != admitted || !admitted && !errors.Is(err, runtime.ErrLimited) {
				t.Errorf("%s: cost %d: %v, want admitted %v", name, cost, err, admitted)
			}
		}
		take(100, true)
		expires("admitted")
		take(100, true)
		expires("admitted again")
		take(most, false)
		expires("denied")
		client.Persist(t.Context(), onlyKey(t, client, rule.Prefix))
		take(some, true)
		// A log may leave its expiry alone for up to 0.8 seconds.
		for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline) &&
			client.PTTL(t.Context(), onlyKey(t, client, rule.Prefix)).Val() < 0; time.Sleep(20 * time.Millisecond) {
			take(1, true)
		}
		expires("healed by an admitted call")
		client.Persist(t.Context(), onlyKey(t, client, rule.Prefix))
		take(most, false)
		expires("healed by a denied call")
		if ttl := client.PTTL(t.Context(), onlyKey(t, client, rule.Prefix)).Val(); ttl < 2*time.Second {
			t.Errorf("%s: healed to expire in %v, long before its events have left", name, ttl)
		}
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
	if len(before) != len(rules) {
		t.Fatalf("%d keys, want %d", len(before), len(rules))
	}
	client.ConfigSet(ctx, "maxmemory-policy", "noeviction")
	ok(t, client.ConfigSet(ctx, "maxmemory", "1").Err())
	var all []runtime.Limit
	for name, rule := range rules {
		if len(all) < runtime.MaxLimits {
			all = append(all, rule.Limit(nil))
		}
		if _, err := limiter.Take(ctx, rule.Limit(nil).WithCost(runtime.MaxLogCost)); !errors.Is(err, runtime.ErrUnavailable) {
			t.Errorf("%s: got %v, want ErrUnavailable", name, err)
		}
		wantLeft(t, limiter, rule.Limit(nil), 9_997)
	}
	if _, err := limiter.Take(ctx, all...); !errors.Is(err, runtime.ErrUnavailable) {
		t.Errorf("several limits: got %v, want ErrUnavailable", err)
	}
	for _, o := range limiter.TakeEach(ctx, all...) {
		if !errors.Is(o.Err, runtime.ErrUnavailable) {
			t.Errorf("a batch: got %+v, want ErrUnavailable", o)
		}
	}
	for key, state := range dump() {
		if state != before[key] {
			t.Errorf("%s has changed", key)
		}
	}
	client.ConfigSet(ctx, "maxmemory", "0")
	for name, rule := range rules {
		if d, err := limiter.Take(ctx, rule.Limit(nil).WithCost(runtime.MaxLogCost)); err != nil || d.Remaining != 9_997-runtime.MaxLogCost {
			t.Errorf("%s: with memory again: got %+v, %v", name, d, err)
		}
	}
}

// TestBytesPerEvent wants events to take the memory that is promised, beyond
// what the key takes with the first one.
func TestBytesPerEvent(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
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
