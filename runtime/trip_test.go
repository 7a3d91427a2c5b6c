package runtime_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/internal/redistest"
	"github.com/rategen/rategen/runtime"
)

// TestSharedTrips has many callers of one key gather while the server is
// paused, so that they are decided together, and wants them to be told what
// they would be one after the other.
func TestSharedTrips(t *testing.T) {
	t.Parallel()
	const callers, cost, most = 60, 2, 50
	server := redistest.Start(t)
	for name, rule := range serverRules(time.Hour, most) {
		var count commands
		own := server.Client(t)
		own.AddHook(&count)
		own.Ping(context.Background())
		store := runtime.NewRedisStore(own, patient)
		call := func() []runtime.Call {
			return []runtime.Call{{Charges: []runtime.Charge{{Rule: rule, Key: []byte(rule.Prefix), Max: most, Cost: cost}}}}
		}
		if err := store.Peek(context.Background(), call()); err != nil {
			t.Fatal(err)
		}
		count.sent()

		server.Pause()
		var mu sync.Mutex
		var left []int64
		denied := 0
		var wait sync.WaitGroup
		for range callers {
			wait.Go(func() {
				calls := call()
				if err := errors.Join(store.Take(context.Background(), calls), calls[0].Err); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				r := calls[0].Charges[0].Result
				mu.Lock()
				defer mu.Unlock()
				switch {
				case r.Allowed && r.At > 0 && r.RetryAfter == 0 && r.ResetAfter > 0:
					left = append(left, r.Remaining)
				case !r.Allowed && r.At == 0 && r.RetryAfter > 0 && r.ResetAfter >= r.RetryAfter && r.Remaining == 0:
					denied++
				default:
					t.Errorf("%s: got %+v", name, r)
				}
			})
		}
		time.Sleep(20 * time.Millisecond) // most have come by then; it matters little
		server.Resume()
		wait.Wait()

		var want []int64
		for n := int64(0); n < most; n += cost {
			want = append(want, n)
		}
		slices.Sort(left)
		if diff := cmp.Diff(want, left); diff != "" || denied != callers-most/cost {
			t.Errorf("%s: %d denied; left after each admitted call (-want +got):\n%s", name, denied, diff)
		}
		trips := 0
		for _, sent := range count.sent() {
			if strings.HasPrefix(sent, "eval") {
				trips++
			}
		}
		t.Logf("%s: %d calls on %d trips", name, callers, trips)
	}
}

// TestLongBatch splits a batch that is too long for one trip, in order.
func TestLongBatch(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	limiter := runtime.New(runtime.NewRedisStore(client, patient), quiet, closed)
	rule := &runtime.Rule{Window: time.Hour, Max: 700}
	limits := slices.Repeat([]runtime.Limit{rule.Limit(key("k"))}, 1000)
	for i, o := range limiter.TakeEach(context.Background(), limits...) {
		if (o.Err == nil) != (i < 700) || i < 700 && o.Remaining != int64(699-i) {
			t.Fatalf("call %d: got %+v", i, o)
		}
	}
}
