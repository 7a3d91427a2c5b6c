package runtime_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// Calls leave a line and others come. Those behind keep their turns, so nobody gets the
// turn of another one, or one beside it.
func TestLeaveALine(t *testing.T) {
	t.Parallel()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			leaveALine(t, runtime.NewMemoryStore(), func(runtime.Decision) time.Time { return time.Now() })
		})
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		store := runtime.NewRedisStore(redistest.Start(t).Client(t), patient, atOnce)
		// A busy machine wakes a call late: the end of its turn by Redis's clock is exact.
		leaveALine(t, store, func(d runtime.Decision) time.Time { return time.UnixMicro(d.ChargedAt()) })
	})
}

// leaveALine wants turns to be as far apart as the rule says, by the times that turn
// returns of calls that have just had theirs.
func leaveALine(t *testing.T, store runtime.Store, turn func(runtime.Decision) time.Time) {
	const apart = 200 * time.Millisecond
	limiter := runtime.New(store, quiet, closed)
	rule := &runtime.Rule{Name: "r", Window: apart, Max: 1, Algorithm: runtime.LeakyBucket, Wait: time.Minute}
	var mu sync.Mutex
	var turns []time.Time
	var wait sync.WaitGroup
	call := func() context.CancelFunc {
		ctx, cancel := context.WithCancel(context.Background())
		wait.Go(func() {
			if d, err := limiter.Take(ctx, rule.Limit(nil)); err == nil {
				mu.Lock()
				turns = append(turns, turn(d))
				mu.Unlock()
				// It failed, and does not count; but its turn had begun.
				refunded(t, limiter, d, rule.Limit(nil))
			}
		})
		return cancel
	}
	var leave []context.CancelFunc
	for range 6 {
		leave = append(leave, call())
		time.Sleep(apart / 50)
	}
	for _, cancel := range leave[1:5] {
		cancel()
		time.Sleep(apart / 50)
		defer call()()
		time.Sleep(apart / 50)
	}
	wait.Wait()
	leave[0]()
	leave[5]()
	slices.SortFunc(turns, time.Time.Compare)
	if len(turns) < 6 { // on a busy machine a call has its turn before it leaves
		t.Errorf("%d calls had a turn, want 6 at least", len(turns))
	}
	for i := 1; i < len(turns); i++ {
		if gap := turns[i].Sub(turns[i-1]); gap < apart {
			t.Errorf("turns %v apart, want %v", gap, apart)
		}
	}
}

// The last one in line gives its turn back to whoever comes next.
func TestLeaveTheEndOfALine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limiter := inMemory()
		rule := &runtime.Rule{Name: "r", Window: time.Second, Max: 1, Algorithm: runtime.LeakyBucket, Wait: time.Minute}
		start := time.Now()
		turn := func(ctx context.Context) time.Duration {
			if _, err := limiter.Take(ctx, rule.Limit(nil)); err != nil {
				return -1
			}
			return time.Since(start)
		}
		if at := turn(t.Context()); at != 0 {
			t.Errorf("the first turn is at %v", at)
		}
		for range 3 {
			cancelled, leave := context.WithCancel(t.Context())
			time.AfterFunc(50*time.Millisecond, leave)
			if at := turn(cancelled); at != -1 {
				t.Errorf("a call that left has its turn at %v", at)
			}
		}
		if at := turn(t.Context()); at != time.Second {
			t.Errorf("the next turn is at %v, want 1s", at)
		}
	})
}
