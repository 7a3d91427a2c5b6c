package runtime_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
)

// Close ends every wait at once, whatever it is for, and a call that would have to wait later has the
// same error. What is left charged is what was before.
func TestCloseEndsWaits(t *testing.T) {
	const wait = time.Hour
	polls := []runtime.Option{runtime.WithEnabled(func() bool { return true })}
	eachCase(t, map[string]struct {
		rule    runtime.Rule
		options []runtime.Option
		waiting int
	}{
		"a window":            {rule: runtime.Rule{Max: 1}, waiting: 3},
		"a window, polled":    {rule: runtime.Rule{Max: 1}, options: polls, waiting: 3},
		"a bucket":            {rule: runtime.Rule{Max: 1, Algorithm: runtime.TokenBucket}, waiting: 3},
		"a queue":             {rule: runtime.Rule{Max: 1, Algorithm: runtime.LeakyBucket, Burst: 9}, waiting: 1},
		"a line for permits":  {rule: runtime.Rule{Max: 1, Algorithm: runtime.Concurrency}, waiting: 3},
		"a permit, alone":     {rule: runtime.Rule{Max: 1, Algorithm: runtime.Concurrency}, waiting: 1},
		"a permit, polled":    {rule: runtime.Rule{Max: 1, Algorithm: runtime.Concurrency}, options: polls, waiting: 3},
		"a hold of its peer":  {rule: runtime.Rule{Max: 9, Hold: true}, waiting: 3},
		"nobody, in a window": {rule: runtime.Rule{Max: 1}},
	}, func(t *testing.T, test struct {
		rule    runtime.Rule
		options []runtime.Option
		waiting int
	}) {
		store := runtime.NewMemoryStore()
		limiter, other := runtime.New(store, append(test.options, quiet)...), runtime.New(store, quiet)
		test.rule.Name, test.rule.Window, test.rule.Wait = "r", time.Minute, wait
		limit := test.rule.Limit(nil)
		taken(t, limiter, limit)
		if test.rule.Hold {
			if err := limiter.Hold(context.Background(), limit, 10*time.Minute); err != nil {
				t.Fatal(err)
			}
		}
		before, _ := other.Peek(context.Background(), limit)
		var ended recorder[error]
		for range test.waiting {
			go func() {
				_, err := limiter.Take(context.Background(), limit)
				ended.add(err)
			}()
			synctest.Wait()
		}
		equal(t, "ended before Close", len(ended.all()), 0)
		equal(t, "Close took", elapsed(func() { _ = limiter.Close() }), 0)
		synctest.Wait()
		_, err := limiter.Take(context.Background(), limit)
		for _, err := range append(ended.all(), err) {
			var status interface{ StatusCode() int }
			if !errors.Is(err, runtime.ErrClosed) || !errors.Is(err, runtime.ErrUnavailable) || !errors.As(err, &status) || status.StatusCode() != 503 {
				t.Errorf("got %v, want %v", err, runtime.ErrClosed)
			}
		}
		equal(t, "ended", len(ended.all()), test.waiting)
		equal(t, "lines and calls in them", limiter.Lines(), 0)
		after, _ := other.Peek(context.Background(), limit)
		equal(t, "Peek", after.RetryAfter, before.RetryAfter)
		time.Sleep(2 * time.Minute)
		if _, err := limiter.Take(context.Background(), (&runtime.Rule{Name: "free", Window: time.Minute, Max: 1}).Limit(nil)); err != nil {
			t.Errorf("a call that need not wait: %v", err)
		}
	})
}
