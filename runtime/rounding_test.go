package runtime_test

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rawstore"
)

// TestBucketRounding fills a bucket to a level so high that what is left for a
// charge is rounded up, so that the charge fits, while the room for it, rounded
// down, is one less.
func TestBucketRounding(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	client := redistest.Start(t).Client(t)
	store := runtime.NewRedisStore(client, patient)
	const most, unit = runtime.MaxCount, 1_000_000
	cost := int64(1)
	for int64(float64((most-cost)*unit)) <= (most-cost)*unit {
		cost++
	}
	level := int64(float64((most - cost) * unit))
	rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: most, Algorithm: runtime.TokenBucket}
	now, err := client.Time(ctx).Result()
	if err != nil {
		t.Fatal(err)
	}
	// The level as it is when the charge is decided: time does not pass before
	// this moment in the future.
	at := now.Add(time.Minute).UnixMicro()
	if err := client.Set(ctx, "rounding", packedBucket(at, level), time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	calls := []rawstore.Call{{Charges: []rawstore.Charge{{Rule: rule, Key: []byte("rounding"), Max: most, Cost: cost}}}}
	if err := rawstore.On(store).Take(ctx, calls); err != nil {
		t.Fatal(err)
	}
	if r := calls[0].Charges[0].Result; calls[0].Err != nil || !r.Allowed || r.Remaining != 0 || r.RetryAfter != 0 {
		t.Errorf("got %+v, %v; want it admitted with nothing left", r, calls[0].Err)
	}
}

// packedBucket returns a bucket that has a level at a time, in bytes as in bucket.lua.
func packedBucket(at, level int64) []byte {
	value := make([]byte, 8, 30)
	value[0] = 3
	for range 2 { // until when the key lives, and the time
		value = append(value, binary.BigEndian.AppendUint64(nil, uint64(at))[1:]...)
	}
	return binary.BigEndian.AppendUint64(value, uint64(level))
}
