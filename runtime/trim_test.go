package runtime_test

import (
	"context"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/storetest"
	"github.com/rategen/rategen/runtime/rawstore"
)

// TestTrim keeps a limit busy for so long that its key never expires, and
// wants what has left the window to be removed.
func TestTrim(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := redistest.Start(t).Client(t)
	for name, rule := range serverRules(time.Second, 10) {
		if rule.Algorithm != runtime.SlidingLog && rule.Algorithm != runtime.SlidingCounter {
			continue // its key is one number or two
		}
		t.Run(name, func(t *testing.T) {
			subject := injected(t, client, nil)
			redisKey := storetest.Prefix(t)
			for i := range 50 {
				calls := []rawstore.Call{{Charges: []rawstore.Charge{{Rule: rule, Key: []byte(redisKey), Max: 10, Cost: 3}}}}
				if err := rawstore.On(subject.Store).Take(ctx, calls); err != nil {
					t.Fatal(err)
				}
				if !calls[0].Charges[0].Allowed {
					t.Fatalf("got %+v", calls[0].Charges[0])
				}
				elements, most := int64(0), int64(10)
				switch client.Type(ctx, redisKey).Val() {
				case "zset":
					elements = client.ZCard(ctx, redisKey).Val()
				case "string":
					if elements = client.StrLen(ctx, redisKey).Val()/7 - 6; rule.Storage == runtime.StoragePacked {
						elements, most = packedLen(t, client, redisKey), 14 // a few may stay
					}
				}
				if elements < 1 || elements > most {
					t.Fatalf("%d elements after %d calls, want at most %d", elements, i+1, most)
				}
				if i < 25 {
					subject.Advance(600 * time.Millisecond) // some have left
				} else {
					subject.Advance(time.Second) // all have, but the key is still there
				}
			}
		})
	}
}

// TestTrimInStretch lets a full window leave while the expiry of the key need
// not be set anew, and wants what is kept of it to be bounded.
func TestTrimInStretch(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := redistest.Start(t).Client(t)
	rule := serverRules(time.Second, 10)["log zset"]
	subject := injected(t, client, nil)
	redisKey := storetest.Prefix(t)
	for _, step := range []struct {
		after time.Duration
		cost  int64
		most  int64 // how many events there may be
		left  int64
	}{{10, 9, 9, 1}, {990, 1, 10, 0}, {10, 4, 15, 5}, {-5, 1, 15, 4}, {6, 4, 10, 0}} {
		subject.Advance(step.after * time.Millisecond)
		calls := []rawstore.Call{{Charges: []rawstore.Charge{{Rule: rule, Key: []byte(redisKey), Max: 10, Cost: step.cost}}}}
		if err := rawstore.On(subject.Store).Take(ctx, calls); err != nil {
			t.Fatal(err)
		}
		if r := calls[0].Charges[0].Result; !r.Allowed || r.Remaining != step.left {
			t.Fatalf("got %+v, want %d left", r, step.left)
		}
		if n := client.ZCard(ctx, redisKey).Val(); n > step.most {
			t.Errorf("%d events %d ms later, want at most %d", n, step.after, step.most)
		}
	}
}

// TestLongLog lets many events leave at once, of which the script finds the
// last by a binary search, at every place of the edge.
func TestLongLog(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	for name, rule := range serverRules(time.Second, 200) {
		if rule.Algorithm != runtime.SlidingLog || rule.Resolution > 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			subject := injected(t, client, nil)
			call := func(cost int64) []rawstore.Call {
				return []rawstore.Call{{Charges: []rawstore.Charge{{Rule: rule, Key: []byte(storetest.Prefix(t)), Max: 200, Cost: cost}}}}
			}
			for range 100 {
				if err := rawstore.On(subject.Store).Take(t.Context(), call(1)); err != nil {
					t.Fatal(err)
				}
				subject.Advance(time.Microsecond)
			}
			subject.Advance(time.Second - 101*time.Microsecond)
			for left := int64(100); left <= 200; left++ {
				calls := call(1)
				if err := rawstore.On(subject.Store).Peek(t.Context(), calls); err != nil {
					t.Fatal(err)
				}
				if got := calls[0].Charges[0].Remaining; got != left {
					t.Fatalf("%d left, want %d", got, left)
				}
				subject.Advance(time.Microsecond)
			}
		})
	}
}
