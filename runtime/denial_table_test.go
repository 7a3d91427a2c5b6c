package runtime

import (
	"strconv"
	"sync"
	"testing"
	"time"
)

func newDenialTable() *denialTable { return &newDenials(time.Hour).table }

// TestDenialTableIsBounded sends more callers than it has room for, and wants
// those forgotten first that nobody believes any more.
func TestDenialTableIsBounded(t *testing.T) {
	t.Parallel()
	const n = 2 * denialShards * denialsAShard
	table := newDenialTable()
	alive := 0
	for i := range n {
		until := time.Duration(i + 10) // soon over
		if i%1000 == 0 {
			until = time.Hour
		}
		table.add(&denial{key: strconv.Itoa(i), until: until}, time.Duration(i+1))
	}
	for i := 0; i < n; i += 1000 {
		if table.find([]byte(strconv.Itoa(i))) != nil {
			alive++
		}
	}
	if alive < n/1000*99/100 {
		t.Errorf("%d of %d long denials are left", alive, n/1000)
	}
	if slots := table.size(); slots > denialShards*denialsAShard/4 {
		t.Errorf("%d slots for %d denials that are believed at a time", slots, n/1000)
	}

	table = newDenialTable()
	for i := range n {
		table.add(&denial{key: strconv.Itoa(i), until: time.Hour}, 1)
	}
	found := 0
	for i := range n {
		if table.find([]byte(strconv.Itoa(i))) != nil {
			found++
		}
	}
	if slots := table.size(); slots != denialShards*denialsAShard || found < slots*9/10 || found > slots {
		t.Errorf("%d denials found in %d slots", found, slots)
	}
}

// size returns how many slots there are.
func (t *denialTable) size() int {
	n := 0
	for i := range t.shards {
		if slots := t.shards[i].slots.Load(); slots != nil {
			n += len(*slots)
		}
	}
	return n
}

// TestDenialTableForgets changes the same keys from many goroutines. What was
// forgotten must not come back from before, and what is found must be whole.
func TestDenialTableForgets(t *testing.T) {
	t.Parallel()
	const keys, rounds = 64, 2000
	table := newDenialTable()
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() { // each forgets keys of its own, and all add all
			for i := range rounds {
				own := strconv.Itoa(worker + 4*(i%(keys/4)))
				asked := instant()
				for k := range keys {
					key := strconv.Itoa(k)
					table.add(&denial{key: key, cost: int64(k), remaining: int64(-k), until: asked + time.Hour}, asked)
					if n := table.find([]byte(key)); n != nil && (n.key != key || n.cost != int64(k) || n.remaining != -n.cost) {
						t.Errorf("key %s: found %+v", key, n)
					}
				}
				forgotten := instant()
				table.forget([]byte(own), forgotten)
				if n := table.find([]byte(own)); n != nil && n.until-time.Hour <= forgotten {
					t.Errorf("key %s: asked for at %v is found, and was forgotten at %v", own, n.until-time.Hour, forgotten)
				}
			}
		})
	}
	wg.Wait()
	for k := range keys {
		key := []byte(strconv.Itoa(k))
		table.forget(key, instant())
		table.add(&denial{key: string(key), until: time.Hour}, 1) // was on its way
		if n := table.find(key); n != nil {
			t.Errorf("key %s: found %+v", key, n)
		}
	}
}
