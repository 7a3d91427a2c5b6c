package runtime_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/storetest"
	"github.com/rategen/rategen/runtime/rawstore"
)

// TestRuns has one trip decide calls of which several in a row share their
// terms, which the script is told once: each must be decided by its own, and
// what is wrong with one must not touch those after it.
func TestRuns(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := redistest.Start(t).Client(t)
	store := runtime.NewRedisStore(client, patient, atOnce)
	for name, rule := range serverRules(time.Hour, 5) {
		t.Run(name, func(t *testing.T) {
			prefix := storetest.Prefix(t)
			shorter := *rule
			shorter.Window, shorter.Max = time.Minute, 3
			charge := func(rule *runtime.Rule, key string, cost int64) rawstore.Charge {
				return chargeOf(rule, prefix+key, cost)
			}
			one := func(rule *runtime.Rule, key string, cost int64) rawstore.Call {
				return rawstore.Call{Charges: []rawstore.Charge{charge(rule, key, cost)}}
			}
			client.SAdd(ctx, prefix+"foreign", "somebody else's")
			calls := []rawstore.Call{
				one(rule, "a", 1), one(rule, "b", 1), one(rule, "foreign", 1), one(rule, "c", 1), one(rule, "a", 1),
				one(&shorter, "d", 1), one(&shorter, "e", 1), one(&shorter, "e", 2),
				{Charges: []rawstore.Charge{charge(rule, "f", 1), charge(&shorter, "g", 1)}},
				one(&shorter, "g", 1), one(rule, "f", 1), one(&shorter, "foreign", 1), one(&shorter, "h", 1),
			}
			left := []int64{4, 4, -1, 4, 3, 2, 2, 0, 4, 1, 3, -1, 2}
			if err := rawstore.On(store).Take(ctx, calls); err != nil {
				t.Fatal(err)
			}
			for i := range calls {
				r := &calls[i].Charges[0].Result
				if left[i] < 0 {
					if calls[i].Err == nil || !strings.Contains(calls[i].Err.Error(), "WRONGTYPE") {
						t.Errorf("call %d: got %+v, %v, want WRONGTYPE", i, r, calls[i].Err)
					}
				} else if calls[i].Err != nil || !r.Allowed || r.Remaining != left[i] || r.At == 0 {
					t.Errorf("call %d: got %+v, %v, want %d left", i, r, calls[i].Err, left[i])
				}
			}
			if rule.Algorithm == runtime.TokenBucket || rule.Algorithm == runtime.LeakyBucket {
				return // how long it lives depends on its level
			}
			for key, longest := range map[string]time.Duration{"b": time.Hour, "d": time.Minute} {
				longest += longest/7 + time.Second // of a bucket too
				if ttl := client.PTTL(ctx, prefix+key).Val(); ttl <= longest/2 || ttl > longest {
					t.Errorf("%s expires in %v, want about %v", key, ttl, longest)
				}
			}
		})
	}
}

// TestLifetime charges keys at many distances in time, and wants each to live
// until its limit is whole again and for at most a second more, whether the
// charge has set the expiry or has left it as it was.
func TestLifetime(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := redistest.Start(t).Client(t)
	for name, rule := range serverRules(10*time.Second, 1000) {
		t.Run(name, func(t *testing.T) {
			subject := injected(t, client, nil)
			key := storetest.Prefix(t)
			for i := range 60 {
				// From steps well within the slack to some of many seconds.
				step := time.Duration(1+i*i*i%977) * time.Duration(1+i%13) * time.Millisecond
				cost := int64(1)
				if i%20 == 8 || i%20 == 9 {
					step = time.Millisecond
				}
				subject.Advance(step)
				if i%20 == 7 {
					cost = 400
				}
				calls := []rawstore.Call{{Charges: []rawstore.Charge{{Rule: rule, Key: []byte(key), Max: 1000, Cost: cost, Wait: rule.Wait}}}}
				must(t, subject.Store, take, calls)
				c := &calls[0].Charges[0]
				if !c.Allowed {
					continue
				}
				if i%20 == 8 { // what is left is whole again long before
					c.Cost = 401
					if err := rawstore.On(subject.Store).Settle(ctx, calls[0].Charges); err != nil {
						t.Fatal(err)
					}
					continue
				}
				lives := expireTime(ctx, client, key) - time.Duration(subject.Now())*time.Microsecond
				if more := lives - c.ResetAfter; more < 0 || more > time.Second {
					t.Errorf("charge %d: lives %v longer than the %v until it is whole again", i, more, c.ResetAfter)
				}
			}
		})
	}
}

// TestLifetimeWhileBusy charges keys so often that most charges leave the expiry alone,
// and wants every one to find a key that lives long enough.
func TestLifetimeWhileBusy(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	for name, rule := range serverRules(200*time.Millisecond, 1000) {
		t.Run(name, func(t *testing.T) {
			subject := injected(t, client, nil)
			key := storetest.Prefix(t)
			for i := range 100 {
				subject.Advance(7 * time.Millisecond)
				calls := []rawstore.Call{{Charges: []rawstore.Charge{{Rule: rule, Key: []byte(key), Max: 1000, Cost: 1, Wait: rule.Wait}}}}
				must(t, subject.Store, take, calls)
				lives := expireTime(t.Context(), client, key) - time.Duration(subject.Now())*time.Microsecond
				if more := lives - calls[0].Charges[0].ResetAfter; more < 0 || more > time.Second {
					t.Fatalf("charge %d: lives %v longer than until it is whole again", i, more)
				}
			}
		})
	}
}

// TestRaisedMember charges a key whose only event has left the window, and whose
// member was raised above the time: the charge sets the expiry of what is a new
// key.
func TestRaisedMember(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := redistest.Start(t).Client(t)
	rule := serverRules(10*time.Second, 5)["log zset"]
	subject := injected(t, client, nil)
	key := storetest.Prefix(t)
	raised := subject.Now() + rule.Window.Microseconds() + 1_000_001
	if err := client.ZAdd(ctx, key, redis.Z{Score: float64(subject.Now()), Member: raised}).Err(); err != nil {
		t.Fatal(err)
	}
	subject.Advance(rule.Window + time.Second)
	calls := []rawstore.Call{{Charges: []rawstore.Charge{{Rule: rule, Key: []byte(key), Max: 5, Cost: 1}}}}
	must(t, subject.Store, take, calls)
	lives := expireTime(ctx, client, key) - time.Duration(subject.Now())*time.Microsecond
	if lives < rule.Window || lives > rule.Window+time.Second {
		t.Errorf("expires in %v, want about %v", lives, rule.Window)
	}
}

// TestRaisedWindow raises a window while a key is in use, and wants a denial to
// see to it that the key outlives what the longer window counts.
func TestRaisedWindow(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := redistest.Start(t).Client(t)
	store := runtime.NewRedisStore(client, patient, atOnce)
	for name, rule := range serverRules(10*time.Second, 2) {
		if layered(rule) {
			continue // its keys name the window
		}
		t.Run(name, func(t *testing.T) {
			key := storetest.Prefix(t)
			longer := *rule
			longer.Window = time.Hour
			var reset time.Duration
			for i, rule := range []*runtime.Rule{rule, &longer, &longer} {
				calls := []rawstore.Call{{Charges: []rawstore.Charge{{Rule: rule, Key: []byte(key), Max: 2, Cost: 1}}}}
				must(t, store, take, calls)
				c := &calls[0].Charges[0]
				if c.Allowed != (i < 2) {
					t.Fatalf("call %d: got %+v", i, c.Result)
				}
				reset = c.ResetAfter
			}
			if ttl := client.PTTL(ctx, key).Val(); ttl < reset-time.Second || ttl > reset+time.Second {
				t.Errorf("expires in %v, want about %v", ttl, reset)
			}
		})
	}
}
