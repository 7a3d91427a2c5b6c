package peerstate

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestBound wants a table to stay bounded, and to keep what is in use.
func TestBound(t *testing.T) {
	var table Table
	l, used := &Limit{First: 10, Life: time.Hour}, []byte("used")
	table.Say(t.Context(), used, l, Said{Max: 3})
	for i := range 5 * half {
		table.Say(t.Context(), strconv.AppendInt(nil, int64(i), 10), l, Said{Max: 2})
		if i%1000 == 0 {
			if got := table.Say(t.Context(), used, l, Said{}).Max; got != 3 {
				t.Fatalf("max %d after %d other keys", got, i)
			}
		}
	}
	if n := len(table.recent) + len(table.old); n > 2*half {
		t.Errorf("%d keys are known", n)
	}
}

// TestTrips counts what a table shares: once for many who ask at a time, once a second, each news,
// and nothing for a second after a fault.
func TestTrips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var trips atomic.Int64
		var fault atomic.Bool
		var shared Table // of all processes
		l, key := &Limit{First: 10, Life: time.Hour, Window: time.Hour}, []byte("k")
		table := Table{Share: func(ctx context.Context, key string, l *Limit, said Said) (State, error) {
			trips.Add(1)
			time.Sleep(10 * time.Millisecond)
			if fault.Load() {
				return State{}, errors.New("away")
			}
			return shared.Say(ctx, []byte(key), l, said), nil
		}}
		want := func(what string, want int64, max int64) {
			t.Helper()
			if got := table.Say(t.Context(), key, l, Said{}).Max; got != max || trips.Swap(0) != want {
				t.Errorf("%s: max %d, want %d; or it has taken other than %d trips", what, got, max, want)
			}
		}
		all := func(said Said) {
			var wg sync.WaitGroup
			for range 256 {
				wg.Go(func() { table.Say(t.Context(), key, l, said) })
			}
			wg.Wait()
		}
		shared.Say(t.Context(), key, l, Said{Max: 5})
		all(Said{})
		want("many ask", 1, 5)
		all(Said{Max: 4})
		want("many say the same", 1, 4)
		time.Sleep(time.Second)
		shared.Say(t.Context(), key, l, Said{Max: 3})
		all(Said{})
		want("a second later", 1, 3)
		time.Sleep(time.Second)
		fault.Store(true)
		all(Said{Max: 2})
		want("a fault", 1, 2)
		time.Sleep(time.Second)
		fault.Store(false)
		want("the fault is over, and Redis was not told", 1, 3)
	})
}
