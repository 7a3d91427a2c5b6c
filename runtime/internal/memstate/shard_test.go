package memstate

import (
	"strconv"
	"testing"

	"github.com/rategen/rategen/runtime/internal/terms"
)

// TestDecideAllKeepsOldKeys decides calls with several charges whose keys are
// all in one shard. The first key is new and the others are forgotten. Making
// room for the first must not lose what is charged to the others.
func TestDecideAllKeepsOldKeys(t *testing.T) {
	t.Parallel()
	const window = 1_000_000
	m, now := New(131_072), start
	next := 0
	newKey := func() []byte {
		for {
			next++
			key := strconv.AppendInt(nil, int64(next), 10)
			if s, _ := m.shard(key); s == &m.shards[0] {
				return key
			}
		}
	}
	take := func(keys ...[]byte) []terms.Charge {
		var charges []terms.Charge
		for _, key := range keys {
			charges = append(charges, terms.Charge{Terms: terms.Terms{Window: window, Max: 5}, Key: key, Cost: 1})
		}
		if i := m.DecideAll(now, charges, true); i >= 0 {
			t.Fatalf("charge %d meets another algorithm", i)
		}
		return charges
	}

	keys := make([][]byte, usualCharges-1)
	for i := range keys {
		keys[i] = newKey()
	}
	for range 20 {
		take(keys...)
		for range 5 { // enough for room to be made
			take(newKey())
		}
		now += 10 * window
		take(append([][]byte{newKey()}, keys...)...)
		for i, c := range take(keys...) {
			if c.Remaining != 3 {
				t.Fatalf("charge %d has %d left after 2 charges of 5", i+1, c.Remaining)
			}
		}
		now += 10 * window
	}
}
