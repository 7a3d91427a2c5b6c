package runtime_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
)

// Calls that wait, in a queue, for a window and for a permit, are told of when they
// begin and when it is over, and others are not.
func TestWaitEvents(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		rule   runtime.Rule
		holds  time.Duration // until a permit is returned
		waited time.Duration // of the second call
	}{
		{"queue", runtime.Rule{Algorithm: runtime.LeakyBucket, Max: 1, Window: time.Second, Wait: time.Minute}, 0, time.Second},
		{"log", runtime.Rule{Max: 1, Window: 10 * time.Second, Wait: time.Minute}, 0, 10 * time.Second},
		{"permits", runtime.Rule{Algorithm: runtime.Concurrency, Max: 1, Window: time.Minute, Wait: 30 * time.Second}, 7 * time.Second, 7 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told recorder[runtime.WaitEvent]
				limiter := inMemory(observing(runtime.Observer{
					Wait: withContext(told.add),
				}))
				defer limiter.Close()
				rule := test.rule
				rule.Name = "r"
				other := &runtime.Rule{Name: "other", Max: 100, Window: time.Hour, Wait: time.Hour}
				limits := []runtime.Limit{other.Limit(nil), rule.Limit(nil)}
				ctx, leave := context.WithCancel(context.Background())
				first, err := limiter.Take(ctx, limits...)
				if err != nil || len(told.all()) != 0 {
					t.Fatalf("%v, %+v", err, told.all())
				}
				var calls sync.WaitGroup
				calls.Go(func() { // it waits, and goes on
					d, err := limiter.Take(context.Background(), limits...)
					if err != nil {
						t.Error(err)
					}
					if test.holds > 0 {
						_ = limiter.Refund(context.Background(), d, limits...)
					}
				})
				synctest.Wait()
				calls.Go(func() { // it waits, and leaves
					if _, err := limiter.Take(ctx, limits...); !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
				})
				synctest.Wait()
				for i, ev := range told.all() {
					if ev != (runtime.WaitEvent{Rule: "r", Waiting: true}) {
						t.Errorf("event %d: %+v", i, ev)
					}
				}
				leave()
				synctest.Wait()
				if events := told.all(); len(events) != 3 || events[2] != (runtime.WaitEvent{Rule: "r"}) {
					t.Errorf("after one has left: %+v", events)
				}
				if time.Sleep(test.holds); test.holds > 0 {
					_ = limiter.Refund(context.Background(), first, limits...)
				}
				calls.Wait()
				if events := told.all(); len(events) != 4 || !events[3].Admitted || events[3].Waiting || events[3].Rule != "r" ||
					events[3].Waited < test.waited || events[3].Waited > test.waited+60*time.Millisecond {
					t.Errorf("in the end: %+v, want a wait of %v", events, test.waited)
				}
			})
		})
	}
}
