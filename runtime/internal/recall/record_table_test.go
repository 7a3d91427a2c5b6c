package recall

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
)

func add(t *table, key string, until, asked time.Duration) {
	t.add([]byte(key), nil, &refusal{freshEnd: until, fitTime: until}, asked)
}

// TestTableIsBounded adds more keys than there is room for, and wants those
// forgotten first that are not fresh any more.
func TestTableIsBounded(t *testing.T) {
	t.Parallel()
	const n = 2 * shards * shardSlots
	table := &New(time.Hour).table
	alive := 0
	for i := range n {
		until := time.Duration(i + 10) // soon over
		if i%1000 == 0 {
			until = time.Hour
		}
		add(table, strconv.Itoa(i), until, time.Duration(i+1))
	}
	for i := 0; i < n; i += 1000 {
		if table.find([]byte(strconv.Itoa(i)), nil) != nil {
			alive++
		}
	}
	if alive < n/1000*99/100 {
		t.Errorf("%d of %d long refusals are left", alive, n/1000)
	}
	if slots := table.size(); slots > shards*shardSlots/4 {
		t.Errorf("%d slots for %d refusals that are fresh at a time", slots, n/1000)
	}

	table = &New(time.Hour).table
	for i := range n {
		add(table, strconv.Itoa(i), time.Hour, 1)
	}
	found := 0
	for i := range n {
		if table.find([]byte(strconv.Itoa(i)), nil) != nil {
			found++
		}
	}
	if slots := table.size(); slots != shards*shardSlots || found < slots*9/10 || found > slots {
		t.Errorf("%d refusals found in %d slots", found, slots)
	}
}

// TestStaleStay adds keys while others are not fresh any more, but hold. All are found, for
// when Redis does not answer.
func TestStaleStay(t *testing.T) {
	t.Parallel()
	const n = 5000
	table := &New(time.Second).table
	for i := range n {
		asked := time.Duration(i+1) * time.Second
		table.add([]byte(strconv.Itoa(i)), nil, &refusal{freshEnd: asked + time.Second, fitTime: 3 * n * time.Second}, asked)
	}
	for i := range n {
		if table.find([]byte(strconv.Itoa(i)), nil) == nil {
			t.Fatalf("refusal %d of %d is gone", i, n)
		}
	}
}

// size returns how many slots there are.
func (t *table) size() int {
	n := 0
	for i := range t.shards {
		if slots := t.shards[i].slots.Load(); slots != nil {
			n += len(*slots)
		}
	}
	return n
}

// TestTableForgets changes the same keys from many goroutines. A refusal from
// before a key was forgotten must not come back, and what is found must be
// whole.
func TestTableForgets(t *testing.T) {
	t.Parallel()
	const keys, rounds = 64, 2000
	table := &New(time.Hour).table
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() { // each forgets keys of its own, and all add all
			for i := range rounds {
				own := strconv.Itoa(worker + 4*(i%(keys/4)))
				asked := clock.Now()
				for k := range keys {
					key := strconv.Itoa(k)
					table.add([]byte(key), nil, &refusal{cost: int64(k), remaining: int64(-k), freshEnd: asked + time.Hour, fitTime: asked + time.Hour}, asked)
					if r := table.find([]byte(key), nil); r != nil {
						n := r.refusals[0]
						if r.key != key || n.cost != int64(k) || n.remaining != -n.cost || len(r.refusals) != 1 {
							t.Errorf("key %s: found %+v", key, r)
						}
					}
				}
				forgotten := clock.Now()
				table.forget([]byte(own), forgotten)
				if r := table.find([]byte(own), nil); r != nil && r.freshEnd-time.Hour <= forgotten {
					t.Errorf("key %s: asked for at %v is found, and was forgotten at %v", own, r.freshEnd-time.Hour, forgotten)
				}
			}
		})
	}
	wg.Wait()
	for k := range keys {
		key := strconv.Itoa(k)
		table.forget([]byte(key), clock.Now())
		add(table, key, time.Hour, 1) // was on its way
		if r := table.find([]byte(key), nil); r != nil {
			t.Errorf("key %s: found %+v", key, r)
		}
	}
}

// TestRecordIsBounded adds refusals of many costs to one key, and wants the
// newest few, and of each cost the newest.
func TestRecordIsBounded(t *testing.T) {
	t.Parallel()
	table := &New(time.Hour).table
	for round := range 3 {
		for cost := range int64(10) {
			table.add([]byte("k"), nil, &refusal{cost: cost, remaining: int64(round), freshEnd: time.Hour, fitTime: time.Hour}, 1)
		}
	}
	r := table.find([]byte("k"), nil)
	if len(r.refusals) != maxCosts {
		t.Fatalf("%d refusals, want %d", len(r.refusals), maxCosts)
	}
	for i, n := range r.refusals {
		if n.cost != int64(9-i) || n.remaining != 2 {
			t.Errorf("refusal %d: got %+v", i, n)
		}
	}
}
