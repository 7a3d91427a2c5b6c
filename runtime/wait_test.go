package runtime_test

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
)

// A call waits until there is room, for as long as its rule and its context let it, and
// otherwise it is refused at once.
func TestWait(t *testing.T) {
	const ms = time.Millisecond
	type test struct {
		wait             time.Duration // of the rule
		deadline, leaves time.Duration // of the call's context, or 0
		waited           time.Duration
		err              error
	}
	eachCase(t, map[string]test{
		"long enough":           {wait: time.Second, waited: time.Second},
		"not quite":             {wait: time.Second - time.Microsecond, err: runtime.ErrLimited},
		"a deadline too near":   {wait: time.Minute, deadline: 999 * ms, err: runtime.ErrLimited},
		"a deadline far enough": {wait: time.Minute, deadline: 1500 * ms, waited: time.Second},
		"the caller leaves":     {wait: time.Minute, leaves: 300 * ms, waited: 300 * ms, err: context.Canceled},
	}, func(t *testing.T, test test) {
		for _, algorithm := range []runtime.Algorithm{runtime.SlidingLog, runtime.FixedWindow, runtime.TokenBucket, runtime.LeakyBucket} {
			limiter := inMemory()
			rule := &runtime.Rule{Name: "r", Window: time.Second, Max: 2, Algorithm: algorithm, Wait: test.wait}
			if algorithm == runtime.LeakyBucket {
				rule.Burst = 10 // how long the queue may be
			}
			whole := rule.Limit(nil).WithCost(2)
			equal(t, "waited with room left", elapsed(func() { taken(t, limiter, whole) }), 0)
			ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(test.deadline, time.Hour))
			if test.leaves > 0 {
				time.AfterFunc(test.leaves, cancel)
			}
			peek, _ := limiter.Peek(ctx, whole)
			var err error
			if waited := elapsed(func() { _, err = limiter.Take(ctx, whole) }); waited != test.waited || !errors.Is(err, test.err) {
				t.Errorf("%v: %v after %v, want %v after %v", algorithm, err, waited, test.err, test.waited)
			}
			cancel()
			if rule.Burst > 0 {
				continue // it tells how long a queue is
			}
			equal(t, "Peek says: retry after", peek.RetryAfter, time.Second)
			if then, _ := limiter.Peek(context.Background(), whole); err != nil && then.RetryAfter != time.Second-test.waited {
				t.Errorf("%v: %+v, want only the first call charged", algorithm, then)
			}
		}
	})
}

// A call with a larger max is admitted before one with a smaller max that waits for longer,
// as with max=share(#priority).
func TestWaitOfPriorities(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []runtime.Algorithm{runtime.SlidingLog, runtime.SlidingCounter} {
		synctest.Test(t, func(t *testing.T) {
			limiter := inMemory()
			limit := (&runtime.Rule{Name: "r", Window: 10 * time.Second, Max: 10, Algorithm: algorithm, Wait: time.Minute}).Limit(nil)
			for range 10 { // one a second
				taken(t, limiter, limit)
				time.Sleep(time.Second)
			}
			waited := map[int64]*time.Duration{8: new(time.Duration), 10: new(time.Duration)}
			for _, most := range []int64{8, 10} {
				go func() { *waited[most] = elapsed(func() { taken(t, limiter, limit.WithMax(most)) }) }()
				synctest.Wait()
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			if *waited[10] > time.Second || *waited[8] < 2*time.Second || *waited[8] > 4*time.Second {
				t.Errorf("%v: the important call waited %v, and the other %v", algorithm, *waited[10], *waited[8])
			}
		})
	}
}

// Of calls that come at once one after the other is admitted. A call that loses its place to
// another waits on, but not for longer than its rule's Wait in all.
func TestWaitAmongOthers(t *testing.T) {
	type test struct {
		rule     runtime.Rule
		admitted int
		apart    time.Duration
		refused  time.Duration // when the others are, at the latest
	}
	eachCase(t, map[string]test{
		"log":   {runtime.Rule{Window: time.Second, Max: 1, Wait: 3 * time.Second}, 4, time.Second, 3 * time.Second},
		"queue": {runtime.Rule{Window: time.Second, Max: 5, Burst: 100, Algorithm: runtime.LeakyBucket, Wait: time.Second}, 6, 200 * time.Millisecond, 0},
	}, func(t *testing.T, test test) {
		limiter, begin := inMemory(), time.Now()
		test.rule.Name = "r"
		var admitted recorder[time.Duration]
		concurrently(20, func(int) {
			if _, err := limiter.Take(context.Background(), test.rule.Limit(nil)); err == nil {
				admitted.add(time.Since(begin))
			} else if !errors.Is(err, runtime.ErrLimited) || time.Since(begin) > test.refused {
				t.Errorf("got %v after %v", err, time.Since(begin))
			}
		})
		var want []time.Duration
		for i := range test.admitted {
			want = append(want, time.Duration(i)*test.apart)
		}
		same(t, "admitted at", want, admitted.all())
	})
}

// A call that leaves a queue gives its turn back, once, and what else it was charged.
func TestQueueCancelledRefunds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := newFake().whileCalled()
		limiter := runtime.New(store, quiet)
		rule := &runtime.Rule{Name: "r", Window: time.Second, Max: 10, Algorithm: runtime.LeakyBucket, Wait: time.Second}
		other := &runtime.Rule{Name: "other", Prefix: "other:", Window: time.Hour, Max: 10}
		taken(t, limiter, rule.Limit(nil).WithCost(4), other.Limit(nil))
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(100*time.Millisecond, cancel)
		var d runtime.Decision
		var err error
		if got := elapsed(func() { d, err = limiter.Take(ctx, rule.Limit(nil).WithCost(5), other.Limit(nil)) }); got != 100*time.Millisecond || err != context.Canceled {
			t.Errorf("got %v after %v, want the context's error after 100ms", err, got)
		}
		if err := limiter.Refund(ctx, d); err != nil || store.settles.Load() != 1 {
			t.Errorf("refunded again: %v and %d refunds, want one", err, store.settles.Load())
		}
		// 300 ms are left of the first, and nothing of the second.
		equal(t, "waited", elapsed(func() { taken(t, limiter, rule.Limit(nil), other.Limit(nil)) }), 300*time.Millisecond)
		wantLeft(t, limiter, other.Limit(nil), 8)
	})
}

// Observers are told when calls begin to wait, in a queue, for a window or for a permit, and
// when that is over. They are told of no other calls.
func TestWaitEvents(t *testing.T) {
	type test struct {
		rule   runtime.Rule
		holds  time.Duration // until a permit is returned
		waited time.Duration // of the second call
	}
	eachCase(t, map[string]test{
		"queue":   {runtime.Rule{Algorithm: runtime.LeakyBucket, Max: 1, Window: time.Second, Wait: time.Minute}, 0, time.Second},
		"log":     {runtime.Rule{Max: 1, Window: 10 * time.Second, Wait: time.Minute}, 0, 10 * time.Second},
		"permits": {runtime.Rule{Algorithm: runtime.Concurrency, Max: 1, Window: time.Minute, Wait: 30 * time.Second}, 7 * time.Second, 7 * time.Second},
	}, func(t *testing.T, test test) {
		var seen recorder[observe.WaitEvent]
		limiter := inMemory(observing(observe.Observer{Wait: withContext(seen.add)}))
		defer limiter.Close()
		test.rule.Name = "r"
		limits := []runtime.Limit{wide.Limit(nil), test.rule.Limit(nil)}
		first := taken(t, limiter, limits...)
		go func() { // it waits, and goes on
			d := taken(t, limiter, limits...)
			if test.holds > 0 {
				refunded(t, limiter, d)
			}
		}()
		synctest.Wait()
		ctx, leave := context.WithCancel(context.Background())
		go func() { // it waits, and leaves
			if _, err := limiter.Take(ctx, limits...); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}()
		synctest.Wait()
		begun := observe.WaitEvent{Rule: "r", Waiting: true}
		same(t, "two wait", []observe.WaitEvent{begun, begun}, seen.all())
		leave()
		synctest.Wait()
		same(t, "one has left", []observe.WaitEvent{begun, begun, {Rule: "r"}}, seen.all())
		time.Sleep(test.holds)
		if test.holds > 0 {
			refunded(t, limiter, first)
		}
		time.Sleep(time.Minute)
		events := seen.all()
		if len(events) != 4 || events[3] != (observe.WaitEvent{Rule: "r", Admitted: true, Waited: events[3].Waited}) ||
			events[3].Waited < test.waited || events[3].Waited > test.waited+60*time.Millisecond {
			t.Errorf("in the end: %+v, want a wait of %v", events, test.waited)
		}
	})
}
