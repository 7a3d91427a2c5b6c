package runtime_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/redistest"
	"github.com/rategen/rategen/runtime"
)

// TestLateRider has a lone caller leave when its time is over, as happens in a
// process that was held up in between. It is told so, nothing is charged, and
// those after it are decided.
func TestLateRider(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := redis.NewClient(runtime.TuneRedis(&redis.Options{Addr: redistest.Start(t).Addr}))
	t.Cleanup(func() { _ = client.Close() })
	store := runtime.NewRedisStore(client, patient)
	rule := &runtime.Rule{Name: "late", Window: time.Hour, Max: 5}
	call := func() []runtime.Call {
		return []runtime.Call{{Charges: []runtime.Charge{{Rule: rule, Key: []byte("k"), Max: 5, Cost: 1}}}}
	}
	for range 3 { // more than trips are under way at a time
		if err := store.TakeLate(call()); runtime.ClassOf(err) != runtime.ClassTimeout {
			t.Errorf("got %v, want that the time is over", err)
		}
	}
	for left := int64(4); left > 2; left-- {
		calls := call()
		if err := store.Take(ctx, calls); err != nil || calls[0].Err != nil || calls[0].Charges[0].Remaining != left {
			t.Errorf("got %+v, %v, want %d left", calls[0], err, left)
		}
	}
	if n := store.Waiting(); n != 0 {
		t.Errorf("%d calls wait", n)
	}
}
