package runtime_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// A refund is made also when its caller's deadline has passed or it was
// cancelled.
func TestRefundAfterTheCaller(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]runtime.Store{
		"memory": runtime.NewMemoryStore(),
		"redis":  runtime.NewRedisStore(redistest.Start(t).Client(t), patient),
		"own":    struct{ runtime.Store }{contextual{runtime.NewMemoryStore()}},
	} {
		limiter := runtime.New(store, quiet, closed)
		limit := (&runtime.Rule{Name: "r", Window: time.Hour, Max: 20}).Limit(key("k"))
		for i := range 20 {
			ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
			d, err := limiter.Take(ctx, limit)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			cancel()
			if i%2 == 0 {
				ctx, cancel = context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
				defer cancel()
			}
			if err := limiter.Refund(ctx, d, limit); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		wantLeft(t, limiter, limit, 20)
	}
}

// contextual is a store that works only while its caller's context does.
type contextual struct{ *runtime.MemoryStore }

func (s contextual) Settle(ctx context.Context, charges []terms.Charge) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return s.MemoryStore.Settle(ctx, charges)
}

// A refund keeps the values of its caller's context, and gets SettleTimeout on a
// store that does not end by itself.
func TestSettleTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		type name struct{}
		store := &stuckRefunds{MemoryStore: runtime.NewMemoryStore(), value: func(ctx context.Context) any { return ctx.Value(name{}) }}
		limiter := runtime.New(store, quiet)
		limit := (&runtime.Rule{Name: "r", Window: time.Hour, Max: 1}).Limit(nil)
		d := taken(t, limiter, limit)
		ctx, cancel := context.WithTimeout(context.WithValue(context.Background(), name{}, "value"), time.Millisecond)
		defer cancel()
		start := time.Now()
		if err := limiter.Refund(ctx, d, limit); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(start); took != runtime.SettleTimeout {
			t.Errorf("took %v, want %v", took, runtime.SettleTimeout)
		}
		if store.got != "value" {
			t.Errorf("the store got the value %v", store.got)
		}
	})
}

type stuckRefunds struct {
	*runtime.MemoryStore
	value func(context.Context) any
	got   any
}

func (s *stuckRefunds) Settle(ctx context.Context, _ []terms.Charge) error {
	s.got = s.value(ctx)
	<-ctx.Done()
	return ctx.Err()
}

// A decision is refunded once, however many copies of it there are and whoever
// refunds them, on the fast path and on the other ones.
func TestRefundOnce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	a := (&runtime.Rule{Name: "a", Window: time.Hour, Max: 1_000_000, Algorithm: runtime.FixedWindow}).Limit(nil)
	b := (&runtime.Rule{Name: "b", Window: time.Hour, Max: 1_000_000, Algorithm: runtime.FixedWindow}).Limit(nil)
	for name, store := range map[string]runtime.Store{"memory": runtime.NewMemoryStore(), "local": new(brokenStore), "own": pass{runtime.NewMemoryStore()}} {
		limiter := runtime.New(store, quiet, runtime.WithFailurePolicy(runtime.FailLocal))
		made := int64(0)
		var decisions []runtime.Decision
		var limits [][]runtime.Limit
		for i := range 3000 {
			call := []runtime.Limit{a, b}[:1+i%2]
			if i%3 == 0 {
				decisions = append(decisions, limiter.TakeEach(ctx, call[0])[0].Decision)
				call = call[:1]
			} else {
				d := taken(t, limiter, call...)
				decisions = append(decisions, d)
			}
			made++
			limits = append(limits, call)
		}
		var won, lost atomic.Int64
		var wait sync.WaitGroup
		for range 8 {
			copies := append([]runtime.Decision(nil), decisions...)
			wait.Go(func() {
				for _, i := range rand.Perm(len(copies)) {
					switch err := limiter.Refund(ctx, copies[i], limits[i]...); err {
					case nil:
						won.Add(1)
					case runtime.ErrSettled:
						lost.Add(1)
					default:
						t.Error(err)
					}
				}
			})
		}
		wait.Wait()
		if won.Load() != made || lost.Load() != 7*made {
			t.Errorf("%s: %d refunds of %d decisions, and %d refused", name, won.Load(), made, lost.Load())
		}
	}
}

// A decision that charged nothing is refunded to no effect, any number of times.
func TestRefundOfNothing(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	limiter := inMemory()
	rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 1}
	first := taken(t, limiter, rule.Limit(nil))
	denied, _ := limiter.Take(ctx, rule.Limit(nil))
	open, _ := runtime.New(new(brokenStore), quiet).Take(ctx, rule.Limit(nil))
	free, _ := limiter.Take(ctx, rule.Limit(nil).WithCost(0))
	for name, d := range map[string]runtime.Decision{"zero": {}, "denied": denied, "not decided": open, "at no cost": free} {
		for range 3 {
			if err := limiter.Refund(ctx, d, rule.Limit(nil)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	// Limits that were not charged use nothing up.
	for _, limits := range [][]runtime.Limit{nil, {rule.Limit(nil).WithCost(0)}, {rule.Limit(nil).WithCost(-1)}} {
		if err := limiter.Refund(ctx, first, limits...); !errors.Is(err, runtime.ErrNotCharged) {
			t.Errorf("got %v", err)
		}
	}
	refunded(t, limiter, first, rule.Limit(nil))
}

// A queue's caller that gives up gets its charge back once.
func TestQueueGivesBackOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &countedRefunds{MemoryStore: runtime.NewMemoryStore()}
		limiter := runtime.New(store, quiet)
		limit := (&runtime.Rule{Name: "q", Window: time.Second, Max: 1, Burst: 100, Algorithm: runtime.LeakyBucket, Wait: time.Minute}).Limit(nil)
		for range 2 {
			taken(t, limiter, limit)
		}
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(time.Millisecond, cancel)
		d, err := limiter.Take(ctx, limit)
		if err != context.Canceled || store.refunds.Load() != 1 {
			t.Errorf("got %v and %d refunds", err, store.refunds.Load())
		}
		if err := limiter.Refund(ctx, d, limit); err != nil || store.refunds.Load() != 1 {
			t.Errorf("again: got %v and %d refunds", err, store.refunds.Load())
		}
	})
}

type countedRefunds struct {
	*runtime.MemoryStore
	refunds atomic.Int64
}

func (s *countedRefunds) Settle(ctx context.Context, charges []terms.Charge) error {
	s.refunds.Add(1)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return s.MemoryStore.Settle(ctx, charges)
}
