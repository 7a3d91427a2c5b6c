package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// Settling makes the real cost the charge, for every pair of costs, whoever
// decided and whether or not the caller waits for it.
func TestSettle(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	stores := map[string]runtime.Store{
		"memory": runtime.NewMemoryStore(), "own": pass{runtime.NewMemoryStore()},
		"redis": runtime.NewRedisStore(redistest.Start(t).Client(t), patient),
	}
	for name, store := range stores {
		for _, later := range []bool{false, true} {
			limiter := runtime.New(store, quiet, closed)
			rule := &runtime.Rule{Name: fmt.Sprint("r", later), Window: time.Hour, Max: 10}
			for reserved := int64(1); reserved <= 5; reserved++ {
				for real := int64(0); real <= 30; real += 1 + real/4 {
					limit := rule.Limit(key(fmt.Sprint(reserved, "-", real))).WithCost(reserved)
					other := rule.Limit(key(fmt.Sprint(reserved, "-", real, "-other")))
					d := taken(t, limiter, limit, other)
					if later {
						limiter.SettleLater(ctx, d, limit.WithSettled(real), other)
						continue
					}
					settled(t, limiter, d, limit.WithSettled(real), other)
					if err := limiter.Settle(ctx, d, limit.WithSettled(0), other); err != runtime.ErrSettled {
						t.Errorf("%s: settled twice: %v", name, err)
					}
				}
			}
			ok(t, limiter.Close())
			for reserved := int64(1); reserved <= 5; reserved++ {
				for real := int64(0); real <= 30; real += 1 + real/4 {
					limit := rule.Limit(key(fmt.Sprint(reserved, "-", real)))
					if got, want := left(t, limiter, limit), max(0, 10-real); got != want {
						t.Errorf("%s, later %v: %d reserved, %d settled: %d left, want %d", name, later, reserved, real, got, want)
					}
					wantLeft(t, limiter, rule.Limit(key(fmt.Sprint(reserved, "-", real, "-other"))), 9)
				}
			}
		}
	}
}

// A call that was decided in this process is settled there.
func TestSettleLocally(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	limiter := runtime.New(new(brokenStore), quiet, runtime.WithFailurePolicy(runtime.FailLocal), runtime.WithReplicas(2))
	limit := (&runtime.Rule{Name: "r", Window: time.Hour, Max: 20}).Limit(nil)
	for i, cost := range []int64{1, 8} { // of the 10 that are this process's share, 3 are left
		d := taken(t, limiter, limit.WithCost(5))
		if settling := limit.WithCost(5).WithSettled(cost); i == 0 {
			settled(t, limiter, d, settling)
		} else {
			limiter.SettleLater(ctx, d, settling)
		}
	}
	denied(t, limiter, limit.WithCost(2))
	if _, err := limiter.Take(ctx, limit); err != nil {
		t.Errorf("a call within the share: %v", err)
	}
}

// A debt ends the denials that this process remembers, and a RetryAfter counts it.
func TestDebtIsNotHidden(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	limiter := onRedis(redistest.Start(t).Client(t))
	limit := (&runtime.Rule{Name: "r", Window: time.Minute, Max: 60, Algorithm: runtime.TokenBucket}).Limit(nil).WithCost(60)
	d := taken(t, limiter, limit)
	var before, after *runtime.LimitedError
	if _, err := limiter.Take(ctx, limit.WithCost(30)); !errors.As(err, &before) {
		t.Fatal(err)
	}
	settled(t, limiter, d, limit.WithSettled(180))
	if _, err := limiter.Take(ctx, limit.WithCost(30)); !errors.As(err, &after) {
		t.Fatal(err)
	}
	if more := after.RetryAfter - before.RetryAfter; more < 90*time.Second || more > 120*time.Second {
		t.Errorf("RetryAfter grew by %v for a debt of two minutes: %v, then %v", more, before.RetryAfter, after.RetryAfter)
	}
	if err := limiter.Refund(ctx, d, limit); err != runtime.ErrSettled {
		t.Errorf("refund of a settled decision: %v", err)
	}
}

// A settled cost out of bounds changes nothing, and the decision can still be
// settled.
func TestSettleOutOfBounds(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	limiter := inMemory()
	log := &runtime.Rule{Name: "log", Window: time.Hour, Max: 1000}
	bucket := &runtime.Rule{Name: "bucket", Window: time.Hour, Max: 1000, Algorithm: runtime.TokenBucket}
	for i, c := range []struct {
		rule     *runtime.Rule
		settled  int64
		wantText string
	}{
		{log, -1, `rule "log": settled cost -1 is negative`},
		{log, -1 << 63, "is negative"},
		{log, 5 + runtime.MaxLogCost + 1, "settled cost 256 is more than 250 above the 5 that were reserved"},
		{bucket, runtime.MaxCount + 1, "settled cost is above 1000000000000"},
		{bucket, 1<<63 - 1, "settled cost is above 1000000000000"},
	} {
		limit := c.rule.Limit(key(fmt.Sprint(i))).WithCost(5)
		d := taken(t, limiter, limit)
		if err := limiter.Settle(ctx, d, limit.WithSettled(c.settled)); !errors.Is(err, runtime.ErrInvalidLimit) || !strings.Contains(err.Error(), c.wantText) {
			t.Errorf("%d: got %v, want %q", c.settled, err, c.wantText)
		}
		wantLeft(t, limiter, limit.WithCost(1), 995)
		settled(t, limiter, d, limit.WithSettled(3))
		wantLeft(t, limiter, limit.WithCost(1), 997)
	}
}

// slowStore takes as long to settle as it is told to.
type slowStore struct {
	runtime.Store
	gate    chan struct{}
	settled atomic.Int64
}

func (s *slowStore) Settle(ctx context.Context, charges []terms.Charge) error {
	select {
	case <-s.gate:
	case <-ctx.Done():
		return ctx.Err()
	}
	s.settled.Add(int64(len(charges)))
	return s.Store.Settle(ctx, charges)
}

// However slow the store is, callers do not wait until 4,096 charges do; nothing is
// lost; and Close waits for all.
func TestSettleLaterQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		store := &slowStore{Store: runtime.NewMemoryStore(), gate: make(chan struct{})}
		var failures atomic.Int64
		limiter := runtime.New(store, quiet, observing(runtime.Observer{Failure: func(_ context.Context, ev runtime.FailureEvent) {
			if !ev.Settling || ev.Rule != "r" {
				t.Errorf("got %+v", ev)
			}
			failures.Add(1)
		}}))
		limit := (&runtime.Rule{Name: "r", Window: time.Hour, Max: 100_000}).Limit(nil)
		later := func() {
			d := taken(t, limiter, limit)
			limiter.SettleLater(ctx, d, limit.WithSettled(0))
		}
		start := time.Now()
		later()
		synctest.Wait() // the goroutine has taken the first
		for range 4096 {
			later()
		}
		if waited := time.Since(start); waited != 0 {
			t.Errorf("callers waited %v", waited)
		}
		later() // the queue is full
		if waited := time.Since(start); waited != runtime.SettleTimeout {
			t.Errorf("with a full queue the caller waited %v, want %v", waited, runtime.SettleTimeout)
		}
		synctest.Wait()
		close(store.gate)
		ok(t, limiter.Close())
		// The first had its time, and so had the last with 127 others.
		if n, lost := store.settled.Load(), failures.Load(); n != 4096-127 || lost != 129 {
			t.Errorf("%d settled, %d reported as lost", n, lost)
		}
		wantLeft(t, limiter, limit, 100_000-129)
		later() // at once after Close
		if n := store.settled.Load(); n != 4096-127+1 {
			t.Errorf("%d settled after Close", n)
		}
	})
}

// Close does not wait for ever for a store that does not settle.
func TestCloseWhileUnsettled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		store := &deafStore{Store: runtime.NewMemoryStore(), gate: make(chan struct{})}
		limiter := runtime.New(store, quiet)
		limit := (&runtime.Rule{Name: "r", Window: time.Hour, Max: 10}).Limit(nil)
		d := taken(t, limiter, limit)
		limiter.SettleLater(ctx, d, limit.WithSettled(0))
		start := time.Now()
		if err := limiter.Close(); err == nil || time.Since(start) != 2*time.Second {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
		close(store.gate)
		ok(t, limiter.Close())
	})
}

// deafStore settles when its gate opens, whatever its context says.
type deafStore struct {
	runtime.Store
	gate chan struct{}
}

func (s *deafStore) Settle(ctx context.Context, charges []terms.Charge) error {
	<-s.gate
	return s.Store.Settle(ctx, charges)
}

// A store that panics while it settles ends neither the process nor the queue.
func TestSettleLaterPanics(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	var in atomic.Value
	store := &panickingStore{Store: runtime.NewMemoryStore()}
	limiter := runtime.New(store, quiet, observing(runtime.Observer{Panic: func(ev runtime.PanicEvent) { in.Store(ev.In) }}))
	limit := (&runtime.Rule{Name: "r", Window: time.Hour, Max: 10}).Limit(nil)
	for range 2 {
		d := taken(t, limiter, limit)
		store.panics.Store(!store.panics.Load())
		limiter.SettleLater(ctx, d, limit.WithSettled(0))
		store.wait(t)
	}
	ok(t, limiter.Close())
	if n := left(t, limiter, limit); n != 9 || in.Load() != "store" {
		t.Errorf("%d left, a panic in %v", n, in.Load())
	}
}

type panickingStore struct {
	runtime.Store
	panics atomic.Bool
	calls  atomic.Int64
}

func (s *panickingStore) Settle(ctx context.Context, charges []terms.Charge) error {
	defer s.calls.Add(1)
	if s.panics.Load() {
		panic("settle")
	}
	return s.Store.Settle(ctx, charges)
}

// wait returns when the store was called once more.
func (s *panickingStore) wait(t *testing.T) {
	for start := time.Now(); s.calls.Load() == 0; time.Sleep(time.Millisecond) {
		if time.Since(start) > time.Minute {
			t.Fatal("the store was not called")
		}
	}
	s.calls.Store(0)
}

// Many callers settle on a real Redis at once, also a key's WRONGTYPE among
// them; only what fails is reported.
func TestSettleLaterOnRedis(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := redistest.Start(t).Client(t)
	var failed sync.Map
	limiter := runtime.New(runtime.NewRedisStore(client, patient), quiet, closed, observing(runtime.Observer{
		Failure: func(_ context.Context, ev runtime.FailureEvent) { failed.Store(fmt.Sprintf("%+v", ev), true) },
	}))
	good := &runtime.Rule{Name: "good", Window: time.Hour, Max: 1_000_000}
	bad := &runtime.Rule{Name: "bad", Window: time.Hour, Max: 1_000_000}
	var wait sync.WaitGroup
	for c := range 32 {
		wait.Go(func() {
			for i := range 50 {
				limit := good.Limit(key(fmt.Sprint(i % 7))).WithCost(3)
				if c == 0 {
					limit = bad.Limit(key(fmt.Sprint(i)))
				}
				d, err := limiter.Take(ctx, limit)
				if err != nil {
					t.Error(err)
				}
				if c == 0 {
					client.Set(ctx, fmt.Sprintf("rate_limit:bad:%d", i), "not a limit's", 0)
				}
				limiter.SettleLater(ctx, d, limit.WithSettled(int64(i%6)))
			}
		})
	}
	wait.Wait()
	ok(t, limiter.Close())
	want := map[int]int64{}
	for i := range 50 {
		want[i%7] += 31 * int64(i%6)
	}
	for i, used := range want {
		wantLeft(t, limiter, good.Limit(key(fmt.Sprint(i))), 1_000_000-used)
	}
	failed.Range(func(ev, _ any) bool {
		if ev != "{Rule:bad Class:wrongtype Policy:default Settling:true Holding:false Err:WRONGTYPE Operation against a key holding the wrong kind of value}" {
			t.Errorf("got %v", ev)
		}
		failed.Delete(ev)
		want = nil
		return true
	})
	if want != nil {
		t.Error("the keys of a foreign type were not reported")
	}
}

// TestSettleOtherLimits settles decisions by fewer, more, other and reordered limits, and
// by another limiter. Each is an error that changes nothing: the right limits still settle
// the decision, once.
func TestSettleOtherLimits(t *testing.T) {
	t.Parallel()
	rate := &runtime.Rule{Name: "rate", Window: time.Hour, Max: 10}
	daily := &runtime.Rule{Name: "daily", Window: 24 * time.Hour, Max: 10, Algorithm: runtime.TokenBucket}
	permit := permitRule(3)
	a, b, c := rate.Limit(key("k")).WithCost(2), daily.Limit(key("k")), permit.Limit(key("k"))
	taken3 := []runtime.Limit{a, b, c}
	wrong := map[string][]runtime.Limit{
		"none":         {},
		"fewer":        {a, b},
		"first":        {a},
		"last":         {c},
		"reordered":    {b, a, c},
		"rotated":      {c, a, b},
		"another key":  {a, daily.Limit(key("l")), c},
		"another rule": {a, rate.Limit(key("k")), c},
		"another cost": {a.WithCost(3), b, c},
		"no cost":      {a, b, c.WithCost(0)},
		"highest cost": {a, b, c.WithCost(runtime.MaxCount)},
		"no rule":      {a, {}, c},
	}
	for name, limits := range wrong {
		for _, source := range []string{"store", "local", "other limiter"} {
			synctest.Test(t, func(t *testing.T) {
				var store runtime.Store = runtime.NewMemoryStore()
				if source == "local" {
					store = new(brokenStore)
				}
				limiter := runtime.New(store, quiet, runtime.WithFailurePolicy(runtime.FailLocal))
				defer func() { _ = limiter.Close() }()
				d := taken(t, limiter, taken3...)
				settling, limits := limiter, limits
				if source == "other limiter" {
					settling, limits = runtime.New(store, quiet), taken3
				}
				if err := settling.Settle(t.Context(), d, limits...); !errors.Is(err, runtime.ErrNotCharged) {
					t.Errorf("%s, %s: settle: %v", name, source, err)
				}
				if err := settling.Refund(t.Context(), d, limits...); !errors.Is(err, runtime.ErrNotCharged) {
					t.Errorf("%s, %s: refund: %v", name, source, err)
				}
				settling.SettleLater(t.Context(), d, limits...)
				time.Sleep(5 * time.Hour) // the permit is renewed
				if got := limiter.InFlight()["permits"]; got != 1 {
					t.Errorf("%s, %s: %d in flight", name, source, got)
				}
				settled(t, limiter, d, taken3...)
				if got := limiter.InFlight()["permits"]; got != 0 {
					t.Errorf("%s, %s: %d in flight at the end", name, source, got)
				}
				if err := limiter.Refund(t.Context(), d, taken3...); !errors.Is(err, runtime.ErrSettled) {
					t.Errorf("%s, %s: again: %v", name, source, err)
				}
			})
		}
	}
}

// A decision may be settled by more limits than were charged: those that were switched
// off, free or left out when it was made.
func TestSettleUncharged(t *testing.T) {
	t.Parallel()
	limiter := inMemory()
	rate := &runtime.Rule{Name: "rate", Window: time.Hour, Max: 10}
	free := rate.Limit(key("free")).WithCost(0)
	a := rate.Limit(key("k"))
	for _, limits := range [][]runtime.Limit{{a, free}, {free, a}, {a}} {
		d := taken(t, limiter, limits...)
		refunded(t, limiter, d, limits...)
	}
	wantLeft(t, limiter, a, 10)
	if err := limiter.Settle(t.Context(), runtime.Decision{}, a.WithSettled(5)); err != nil || left(t, limiter, a) != 10 {
		t.Errorf("a decision that charged nothing: %v, left %d", err, left(t, limiter, a))
	}
}
