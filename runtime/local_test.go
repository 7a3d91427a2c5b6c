package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// A moody store answers or does not, as it is told.
type moody struct {
	runtime.Store
	broken atomic.Bool
}

func (s *moody) Take(ctx context.Context, calls []terms.Call) error {
	if s.broken.Load() {
		return errBroken
	}
	return s.Store.Take(ctx, calls)
}

// Processes that share a limit admit its max together while Redis is dead, and
// each of them its part.
func TestReplicasShareMax(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Kill()
	for _, algorithm := range algorithms {
		for _, test := range []struct{ max, burst, each int64 }{{30, 0, 10}, {31, 0, 10}, {2, 0, 1}, {60, 10, 3}} {
			bucket := algorithm == runtime.TokenBucket || algorithm == runtime.LeakyBucket
			if test.burst > 0 && !bucket {
				continue
			}
			t.Run(fmt.Sprint(algorithm, test), func(t *testing.T) {
				t.Parallel()
				rule := &runtime.Rule{Name: "r", Window: 100 * time.Hour, Max: test.max, Burst: test.burst, Algorithm: algorithm, Fail: runtime.FailLocal}
				sum := int64(0)
				for range 3 {
					client := server.Client(t, func(o *redis.Options) { o.DialerRetries, o.MaxRetries = 1, -1 })
					limiter := runtime.New(runtime.NewRedisStore(client), quiet, runtime.WithReplicas(3))
					got := int64(0)
					for range 40 {
						d, err := limiter.Take(context.Background(), rule.Limit(key("k")))
						if d.Source != runtime.SourceLocal || d.Limit != test.each {
							t.Fatalf("got %+v, %v, want a limit of %d", d, err, test.each)
						}
						if err == nil {
							got++
						} else if !errors.Is(err, runtime.ErrLimited) {
							t.Fatal(err)
						}
					}
					if got != test.each {
						t.Errorf("one process admitted %d, want %d", got, test.each)
					}
					sum += got
				}
				bound := max(3, test.max)
				if test.burst > 0 {
					bound = test.burst
				}
				if sum > bound {
					t.Errorf("%d admitted together, more than %d", sum, bound)
				}
			})
		}
	}
}

// A call that costs more than the share takes all of it, and gives all of it
// back.
func TestReplicasCost(t *testing.T) {
	t.Parallel()
	for _, algorithm := range algorithms {
		t.Run(algorithm.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := context.Background()
				limiter := runtime.New(&brokenStore{}, quiet, runtime.WithReplicas(3), runtime.WithFailurePolicy(runtime.FailLocal))
				rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 9, Algorithm: algorithm}
				dear, cheap := rule.Limit(nil).WithCost(9), rule.Limit(nil)
				for range 3 {
					d, err := limiter.Take(ctx, dear)
					if err != nil || d.Remaining != 0 || d.Limit != 3 || d.Source != runtime.SourceLocal {
						t.Fatalf("got %+v, %v", d, err)
					}
					if _, err := limiter.Take(ctx, cheap); !errors.Is(err, runtime.ErrLimited) || errors.Is(err, runtime.ErrCostExceedsLimit) {
						t.Errorf("a call after it: %v", err)
					}
					refunded(t, limiter, d, dear)
				}
				if got := passing(t, limiter, cheap, 10); got != 3 {
					t.Errorf("%d admitted after the refund, want 3", got)
				}
				// What not even the whole limit admits stays hopeless.
				if _, err := limiter.Take(ctx, rule.Limit(nil).WithCost(10)); !errors.Is(err, runtime.ErrCostExceedsLimit) {
					t.Errorf("cost over max: %v", err)
				}
			})
		})
	}
}

// A call that waits for its share finds the same one when it looks again, and
// the whole limit when the store is back.
func TestReplicasWait(t *testing.T) {
	t.Parallel()
	for _, back := range []bool{false, true} {
		t.Run(fmt.Sprint("store back ", back), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := context.Background()
				store := &moody{Store: runtime.NewMemoryStore()}
				store.broken.Store(true)
				limiter := runtime.New(store, quiet, runtime.WithReplicas(3))
				rule := &runtime.Rule{Name: "r", Window: time.Second, Max: 9, Wait: time.Minute, Fail: runtime.FailLocal}
				if got := passing(t, limiter, rule.Limit(nil), 3); got != 3 {
					t.Fatalf("%d admitted", got)
				}
				begin := time.Now()
				if back {
					time.AfterFunc(time.Millisecond, func() { store.broken.Store(false) })
				}
				d, err := limiter.Take(ctx, rule.Limit(nil).WithCost(3))
				if took := time.Since(begin); err != nil || took != time.Second {
					t.Errorf("got %+v, %v after %v, want 1s", d, err, took)
				}
				want := runtime.Decision{Source: runtime.SourceLocal, Limit: 3}
				if back {
					want = runtime.Decision{Source: runtime.SourceStore, Limit: 9, Remaining: 6}
				}
				if d.Source != want.Source || d.Limit != want.Limit || d.Remaining != want.Remaining {
					t.Errorf("got %+v, want %+v", d, want)
				}
			})
		})
	}
}

// The store decides again as soon as it can, by its own counts, and what was
// decided here can still be given back here.
func TestLocalHandsBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		store := &moody{Store: runtime.NewMemoryStore()}
		limiter := runtime.New(store, quiet, runtime.WithReplicas(2), runtime.WithFailurePolicy(runtime.FailLocal))
		rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 4, Burst: 4, Algorithm: runtime.TokenBucket}
		limit := rule.Limit(nil).WithCost(2)
		take := func(want runtime.Source, limit int64) runtime.Decision {
			t.Helper()
			d, err := limiter.Take(ctx, rule.Limit(nil).WithCost(2))
			if err != nil || d.Source != want || d.Limit != limit {
				t.Fatalf("got %+v, %v, want %v with a limit of %d", d, err, want, limit)
			}
			return d
		}
		take(runtime.SourceStore, 4)
		store.broken.Store(true)
		d := take(runtime.SourceLocal, 2)
		store.broken.Store(false)
		refunded(t, limiter, d, limit)
		take(runtime.SourceStore, 4)
		if got := passing(t, limiter, rule.Limit(nil), 3); got != 0 {
			t.Errorf("a local charge was given back to the store: %d more admitted", got)
		}
		store.broken.Store(true)
		take(runtime.SourceLocal, 2)
		if got := passing(t, limiter, rule.Limit(nil), 3); got != 0 {
			t.Errorf("%d more admitted here", got)
		}
	})
}

// An override of a rule changes the share of it, each time.
func TestReplicasOverride(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		source := new(board)
		limiter := runtime.New(nil, quiet, runtime.WithReplicas(2), runtime.WithOverrides(source, time.Second), runtime.WithFailurePolicy(runtime.FailLocal))
		defer limiter.Close()
		rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 4, Burst: 6, Algorithm: runtime.TokenBucket}
		if got := passing(t, limiter, rule.Limit(key("a")), 10); got != 3 {
			t.Errorf("%d admitted, want 3", got)
		}
		source.set(one(runtime.Override{Mode: new(runtime.ModeShadow)}), nil)
		time.Sleep(time.Second)
		synctest.Wait()
		if got := passing(t, limiter, rule.Limit(key("a")), 10); got != 10 {
			t.Errorf("in the shadow: %d admitted, want 10", got)
		}
		source.set(one(runtime.Override{Max: new(int64(0))}), nil)
		time.Sleep(time.Second)
		synctest.Wait()
		if got := passing(t, limiter, rule.Limit(key("b")), 10); got != 0 {
			t.Errorf("a max of 0: %d admitted", got)
		}
	})
}

// Every limit that the store did not decide is told of, also beside one that
// fails closed.
func TestFailuresAreAllTold(t *testing.T) {
	t.Parallel()
	var told recorder[runtime.FailureEvent]
	limiter := runtime.New(nil, quiet, observing(runtime.Observer{Failure: withContext(told.add)}))
	closed := &runtime.Rule{Name: "closed", Prefix: "c:", Window: time.Hour, Max: 4, Fail: runtime.FailClosed}
	if _, err := limiter.Take(context.Background(), closed.Limit(nil), wide.Limit(nil)); !errors.Is(err, runtime.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	if got := told.all(); len(got) != 2 || got[0].Policy != runtime.FailClosed || got[1].Policy != runtime.FailOpen || got[1].Rule != "wide" {
		t.Errorf("told %+v", got)
	}
}
