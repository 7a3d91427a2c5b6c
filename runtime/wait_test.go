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

func TestWait(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []runtime.Algorithm{runtime.SlidingLog, runtime.FixedWindow, runtime.TokenBucket} {
		t.Run(algorithm.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limiter := inMemory()
				rule := &runtime.Rule{Name: "r", Window: time.Second, Max: 2, Algorithm: algorithm, Wait: time.Second}
				for range 2 {
					equal(t, "waited with room left", elapsed(func() { limiter.Take(t.Context(), rule.Limit(nil)) }), 0)
				}
				whole := rule.Limit(nil).WithCost(2)
				peek, _ := limiter.Peek(t.Context(), whole)
				var err error
				if got := elapsed(func() { _, err = limiter.Take(t.Context(), whole) }); err != nil || got != time.Second || peek.RetryAfter != got {
					t.Errorf("waited %v, want 1s and as peek said, %v: %v", got, peek.RetryAfter, err)
				}
				// It would take longer than the rule lets it wait.
				impatient := *rule
				impatient.Wait = time.Second - time.Microsecond
				if got := elapsed(func() { _, err = limiter.Take(t.Context(), impatient.Limit(nil).WithCost(2)) }); got != 0 || !errors.Is(err, runtime.ErrLimited) {
					t.Errorf("gave up after %v with %v, want at once and ErrLimited", got, err)
				}
			})
		})
	}
}

// TestWaitOfPriorities wants a call with a larger max to be admitted before one with a
// smaller max that waits for longer, as with max=share(#priority).
func TestWaitOfPriorities(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []runtime.Algorithm{runtime.SlidingLog, runtime.SlidingCounter} {
		synctest.Test(t, func(t *testing.T) {
			limiter := inMemory()
			rule := &runtime.Rule{Name: "r", Window: 10 * time.Second, Max: 10, Algorithm: algorithm, Wait: time.Minute}
			for range 10 { // one a second
				if _, err := limiter.Take(t.Context(), rule.Limit(nil)); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
			}
			start, admitted := time.Now(), map[int64]time.Duration{}
			var mu sync.Mutex
			var wg sync.WaitGroup
			for _, most := range []int64{8, 10} {
				wg.Go(func() {
					if _, err := limiter.Take(t.Context(), rule.Limit(nil).WithMax(most)); err != nil {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					admitted[most] = time.Since(start)
				})
				synctest.Wait()
			}
			wg.Wait()
			if admitted[10] > time.Second || admitted[8] < 2*time.Second || admitted[8] > 4*time.Second {
				t.Errorf("%v: the important call waited %v, and the other %v", algorithm, admitted[10], admitted[8])
			}
		})
	}
}

func TestWaitDeadline(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []runtime.Algorithm{runtime.SlidingLog, runtime.LeakyBucket} {
		synctest.Test(t, func(t *testing.T) {
			limiter := inMemory()
			rule := &runtime.Rule{Name: "r", Window: time.Second, Max: 1, Algorithm: algorithm, Wait: time.Minute}
			if algorithm == runtime.LeakyBucket {
				rule.Burst = 10 // how long the queue may be
			}
			take := func(timeout time.Duration) (err error) {
				ctx, cancel := context.WithTimeout(context.Background(), timeout)
				defer cancel()
				_, err = limiter.Take(ctx, rule.Limit(nil))
				return err
			}
			ok(t, take(time.Hour))
			var err error
			if got := elapsed(func() { err = take(999 * time.Millisecond) }); got != 0 || !errors.Is(err, runtime.ErrLimited) {
				t.Errorf("%v: a deadline too near: %v after %v, want ErrLimited at once", algorithm, err, got)
			}
			if got := elapsed(func() { err = take(1500 * time.Millisecond) }); got != time.Second || err != nil {
				t.Errorf("%v: a deadline far enough: %v after %v, want to wait 1s", algorithm, err, got)
			}
		})
	}
}

// A call that loses its place to another waits on, but not for longer than its
// rule's Wait in all.
func TestWaitAmongOthers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		limiter := inMemory()
		rule := &runtime.Rule{Name: "r", Window: time.Second, Max: 1, Wait: 3 * time.Second}
		begin := time.Now()
		admitted := make(chan time.Duration, 10)
		for range 10 {
			go func() {
				_, err := limiter.Take(context.Background(), rule.Limit(nil))
				if err == nil {
					admitted <- time.Since(begin)
				} else if !errors.Is(err, runtime.ErrLimited) || time.Since(begin) > 3*time.Second {
					t.Errorf("got %v after %v", err, time.Since(begin))
				}
			}()
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		close(admitted)
		var got []time.Duration
		for d := range admitted {
			got = append(got, d)
		}
		want := []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second}
		same(t, "admitted at", want, got)
	})
}

func TestWaitCancelled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		limiter := inMemory()
		rule := &runtime.Rule{Name: "r", Window: time.Second, Max: 1, Wait: time.Minute}
		taken(t, limiter, rule.Limit(nil))
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(300*time.Millisecond, cancel)
		var err error
		if got := elapsed(func() { _, err = limiter.Take(ctx, rule.Limit(nil)) }); got != 300*time.Millisecond || err != context.Canceled {
			t.Errorf("got %v after %v, want the context's error after 300ms", err, got)
		}
		if d, err := limiter.Peek(context.Background(), rule.Limit(nil)); err != nil || d.RetryAfter != 700*time.Millisecond {
			t.Errorf("got %+v, %v, want only the first call charged", d, err)
		}
	})
}

func TestQueueSpacesEvenly(t *testing.T) {
	bubble(t, func(t *testing.T) {
		limiter := inMemory()
		rule := &runtime.Rule{Name: "r", Window: time.Second, Max: 5, Burst: 100, Algorithm: runtime.LeakyBucket, Wait: time.Second}
		begin := time.Now()
		admitted := make(chan time.Duration, 20)
		for range 20 {
			go func() {
				if _, err := limiter.Take(context.Background(), rule.Limit(nil)); err == nil {
					admitted <- time.Since(begin)
				} else if time.Since(begin) != 0 {
					t.Errorf("refused after %v, want at once", time.Since(begin))
				}
			}()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		close(admitted)
		next := time.Duration(0)
		for at := range admitted {
			if at != next {
				t.Errorf("admitted after %v, want %v", at, next)
			}
			next += 200 * time.Millisecond
		}
		if next != 1200*time.Millisecond {
			t.Errorf("admitted until %v, want 6 calls within 1s", next)
		}
	})
}

func TestQueueCancelledRefunds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := newFake().whileCalled()
		limiter := runtime.New(store, quiet)
		rule := &runtime.Rule{Name: "r", Window: time.Second, Max: 10, Algorithm: runtime.LeakyBucket, Wait: time.Second}
		other := &runtime.Rule{Name: "other", Prefix: "other:", Window: time.Hour, Max: 10}
		var d runtime.Decision
		take := func(ctx context.Context, cost int64) (err error) {
			d, err = limiter.Take(ctx, rule.Limit(nil).WithCost(cost), other.Limit(nil))
			return err
		}
		ok(t, take(context.Background(), 4))
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(100*time.Millisecond, cancel)
		var err error
		if got := elapsed(func() { err = take(ctx, 5) }); got != 100*time.Millisecond || err != context.Canceled {
			t.Errorf("got %v after %v, want the context's error after 100ms", err, got)
		}
		if err := limiter.Refund(ctx, d); err != nil || store.settles.Load() != 1 {
			t.Errorf("refunded again: %v and %d refunds, want one", err, store.settles.Load())
		}
		// 300 ms are left of the first, and nothing of the second.
		if got := elapsed(func() { err = take(context.Background(), 1) }); got != 300*time.Millisecond || err != nil {
			t.Errorf("waited %v, %v, want 300ms", got, err)
		}
		wantLeft(t, limiter, other.Limit(nil), 8)
	})
}

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
				var seen recorder[runtime.WaitEvent]
				limiter := inMemory(observing(runtime.Observer{
					Wait: withContext(seen.add),
				}))
				defer limiter.Close()
				rule := test.rule
				rule.Name = "r"
				other := &runtime.Rule{Name: "other", Max: 100, Window: time.Hour, Wait: time.Hour}
				limits := []runtime.Limit{other.Limit(nil), rule.Limit(nil)}
				ctx, leave := context.WithCancel(context.Background())
				first, err := limiter.Take(ctx, limits...)
				if err != nil || len(seen.all()) != 0 {
					t.Fatalf("%v, %+v", err, seen.all())
				}
				var calls sync.WaitGroup
				calls.Go(func() { // it waits, and goes on
					d, err := limiter.Take(context.Background(), limits...)
					if err != nil {
						t.Error(err)
					}
					if test.holds > 0 {
						_ = limiter.Refund(context.Background(), d)
					}
				})
				synctest.Wait()
				calls.Go(func() { // it waits, and leaves
					if _, err := limiter.Take(ctx, limits...); !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
				})
				synctest.Wait()
				for i, ev := range seen.all() {
					if ev != (runtime.WaitEvent{Rule: "r", Waiting: true}) {
						t.Errorf("event %d: %+v", i, ev)
					}
				}
				leave()
				synctest.Wait()
				if events := seen.all(); len(events) != 3 || events[2] != (runtime.WaitEvent{Rule: "r"}) {
					t.Errorf("after one has left: %+v", events)
				}
				if time.Sleep(test.holds); test.holds > 0 {
					_ = limiter.Refund(context.Background(), first)
				}
				calls.Wait()
				if events := seen.all(); len(events) != 4 || !events[3].Admitted || events[3].Waiting || events[3].Rule != "r" ||
					events[3].Waited < test.waited || events[3].Waited > test.waited+60*time.Millisecond {
					t.Errorf("in the end: %+v, want a wait of %v", events, test.waited)
				}
			})
		})
	}
}
