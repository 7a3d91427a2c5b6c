package runtime_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/redistest"
	"github.com/rategen/rategen/runtime"
)

// TestBucketRounding leaves a bucket so nearly empty that a charge of all it
// holds fits, while the room it has, rounded down, is one less.
func TestBucketRounding(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	client := redistest.Start(t).Client(t)
	store := runtime.NewRedisStore(client, patient)
	rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 4, Algorithm: runtime.TokenBucket}
	now, err := client.Time(ctx).Result()
	if err != nil {
		t.Fatal(err)
	}
	// The level as it is when the charge is decided: time does not pass before
	// this moment in the future.
	level := now.Add(time.Minute).UnixMicro()
	if err := client.Set(ctx, "rounding", "4e-16 "+strconv.FormatInt(level, 10), time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	calls := []runtime.Call{{Charges: []runtime.Charge{{Rule: rule, Key: []byte("rounding"), Max: 4, Cost: 4}}}}
	if err := store.Take(ctx, calls); err != nil {
		t.Fatal(err)
	}
	if r := calls[0].Charges[0].Result; calls[0].Err != nil || !r.Allowed || r.Remaining != 0 || r.RetryAfter != 0 {
		t.Errorf("got %+v, %v; want it admitted with nothing left", r, calls[0].Err)
	}
}
