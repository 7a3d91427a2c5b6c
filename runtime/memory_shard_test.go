package runtime

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"
)

// TestMemoryStoreChargesWhatComesBack has calls with several limits, all in one
// shard, of which the first key is new and the others are forgotten. Making
// room for the first must not lose what is charged to the others.
func TestMemoryStoreChargesWhatComesBack(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rule := &Rule{Name: "r", Window: time.Second}
	store, now := NewMemoryStore(), time.Now().UnixMicro()
	store.SetClock(func() int64 { return now })
	next := 0
	newKey := func() []byte {
		for {
			next++
			key := strconv.AppendInt(nil, int64(next), 10)
			if shard, _ := store.shard(key); shard == &store.shards[0] {
				return key
			}
		}
	}
	take := func(keys ...[]byte) []Charge {
		call := Call{}
		for _, key := range keys {
			call.Charges = append(call.Charges, Charge{Rule: rule, Key: key, Max: 5, Cost: 1})
		}
		calls := []Call{call}
		if err := errors.Join(store.Take(ctx, calls), calls[0].Err); err != nil {
			t.Fatal(err)
		}
		return calls[0].Charges
	}

	keys := make([][]byte, MaxLimits-1)
	for i := range keys {
		keys[i] = newKey()
	}
	for range 20 {
		take(keys...)
		for range 5 { // so many that room is made
			take(newKey())
		}
		now += 10 * rule.Window.Microseconds()
		take(append([][]byte{newKey()}, keys...)...)
		for i, c := range take(keys...) {
			if c.Remaining != 3 {
				t.Fatalf("limit %d has %d left after 2 charges of 5", i+1, c.Remaining)
			}
		}
		now += 10 * rule.Window.Microseconds()
	}
}
