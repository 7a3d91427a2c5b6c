package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// TestDenialMemory shows that a caller over its limit costs no trips, that only
// what is sure to be denied is, and that what this process changes itself is
// seen at once.
func TestDenialMemory(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client(t)
	count := counting(client)
	limiter := runtime.New(runtime.NewRedisStore(client, patient, runtime.WithDenialMemory(time.Hour)), quiet)
	rule := &runtime.Rule{Name: "r", Prefix: "denials:", Window: time.Hour, Max: 10}
	limit := rule.Limit(runtime.NewKey().AddString("a"))

	first := taken(t, limiter, limit.WithCost(4))
	taken(t, limiter, limit.WithCost(4))
	var denied runtime.Decision
	for _, cost := range []int64{5, 7} { // a denial tells nothing of the time until a higher cost fits
		var err error
		denied, err = limiter.Take(t.Context(), limit.WithCost(cost))
		if !errors.Is(err, runtime.ErrLimited) || denied.Source != runtime.SourceStore {
			t.Fatalf("got %+v, %v; want a denial by the store", denied, err)
		}
	}
	count.sent()
	for range 1000 {
		again, err := limiter.Take(t.Context(), limit.WithCost(7))
		if !errors.Is(err, runtime.ErrLimited) || again.Source != runtime.SourceRecalled {
			t.Fatalf("got %+v, %v; want a recalled denial", again, err)
		}
		if again.Remaining != 2 || again.RetryAfter <= 0 || again.RetryAfter > denied.RetryAfter || again.ResetAfter > denied.ResetAfter {
			t.Fatalf("got %+v; want no more than %+v", again, denied)
		}
	}
	equal(t, "trips for 1000 denials", count.scripts(), 0)

	taken(t, limiter, limit.WithCost(2))                           // cheaper than what was denied
	taken(t, limiter, limit.WithCost(5).WithMax(20))               // under a higher max
	taken(t, limiter, rule.Limit(runtime.NewKey().AddString("b"))) // another key
	refunded(t, limiter, first)
	if _, err := limiter.Take(t.Context(), limit.WithCost(1)); !errors.Is(err, runtime.ErrLimited) {
		t.Fatalf("11 of 10 are charged: got %v, want a denial", err)
	}
	ok(t, limiter.Reset(t.Context(), limit))
	taken(t, limiter, limit.WithCost(10))
}

// TestDenialMemoryEnds shows that a denial is not believed for longer than the
// store was told, and never beyond the time that Redis named.
func TestDenialMemoryEnds(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client(t)
	limiter := runtime.New(runtime.NewRedisStore(client, patient, runtime.WithDenialMemory(50*time.Millisecond)), quiet)
	other := runtime.New(runtime.NewRedisStore(client, patient), quiet)
	rule := &runtime.Rule{Name: "r", Prefix: "denials:", Window: time.Hour, Max: 1}
	limit := rule.Limit(nil)
	taken(t, limiter, limit)
	denied(t, limiter, limit)
	if err := other.Reset(t.Context(), limit); err != nil { // which limiter does not hear of
		t.Fatal(err)
	}
	eventually(t, "the denial is no longer believed", func() bool {
		d, err := limiter.Take(t.Context(), limit)
		if err != nil && d.Source != runtime.SourceRecalled {
			t.Fatalf("got %+v, want an admission or a recalled denial", d)
		}
		return err == nil
	})

	short := &runtime.Rule{Name: "s", Prefix: "short:", Window: 30 * time.Millisecond, Max: 1, Algorithm: runtime.FixedWindow}
	for range 20 {
		_, err := limiter.Take(t.Context(), short.Limit(nil))
		var limited *runtime.LimitedError
		if errors.As(err, &limited) {
			time.Sleep(limited.RetryAfter)
			if _, err := limiter.Take(t.Context(), short.Limit(nil)); err != nil {
				t.Fatalf("denied at the time that the denial named: %v", err)
			}
		}
	}
}

// TestDenialOutlastsRedis shows that a caller over its limit is not let through
// because Redis went away, before its time has come.
func TestDenialOutlastsRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	store := runtime.NewRedisStore(server.Client(t), runtime.WithTimeout(time.Second), runtime.WithDenialMemory(time.Millisecond))
	limiter := runtime.New(store, quiet, runtime.WithFailurePolicy(runtime.FailOpen))
	long := &runtime.Rule{Name: "long", Prefix: "long:", Window: time.Hour, Max: 1}
	short := &runtime.Rule{Name: "short", Prefix: "short:", Window: 2 * time.Second, Max: 1}
	var limited *runtime.LimitedError
	for _, rule := range []*runtime.Rule{long, short} {
		if d, err := limiter.Take(t.Context(), rule.Limit(nil)); err != nil || d.Source != runtime.SourceStore {
			t.Fatalf("got %+v, %v", d, err)
		}
		if d, err := limiter.Take(t.Context(), rule.Limit(nil)); !errors.As(err, &limited) || d.Source != runtime.SourceStore {
			t.Fatalf("got %+v, %v; want a denial by the store", d, err)
		}
	}
	back := time.Now().Add(limited.RetryAfter)
	server.Kill()

	for range 20 { // the breaker opens meanwhile
		if d, err := limiter.Take(t.Context(), long.Limit(nil)); !errors.Is(err, runtime.ErrLimited) || d.Source != runtime.SourceRecalled {
			t.Fatalf("while Redis is away: got %+v, %v; want a recalled denial", d, err)
		}
		if d, err := limiter.Take(t.Context(), long.Limit(key("another"))); err != nil || d.Source != runtime.SourceFailure {
			t.Fatalf("another key: got %+v, %v; want the policy to let it through", d, err)
		}
	}
	for _, o := range limiter.TakeEach(t.Context(), long.Limit(nil), long.Limit(key("another"))) {
		if denied := o.Source == runtime.SourceRecalled; denied != errors.Is(o.Err, runtime.ErrLimited) || !denied && o.Source != runtime.SourceFailure {
			t.Errorf("each: got %+v", o)
		}
	}
	time.Sleep(time.Until(back))
	if d, err := limiter.Take(t.Context(), short.Limit(nil)); err != nil || d.Source != runtime.SourceFailure {
		t.Errorf("at the time that the denial named: got %+v, %v; want the policy to let it through", d, err)
	}
}

// TestDenialsOfEach has callers who are over their limits come several at a time while
// Redis fails, for a call of its own or for all: as one by one, they are let through no
// sooner for it.
func TestDenialsOfEach(t *testing.T) {
	t.Parallel()
	const callers = 300 // more than a batch takes
	rule := &runtime.Rule{Name: "r", Prefix: "each:", Window: time.Hour, Max: 1}
	limits := make([]runtime.Limit, callers)
	for i := range limits {
		limits[i] = rule.Limit(runtime.NewKey().AddInt(int64(i)))
	}
	const trust = 500 * time.Millisecond
	forgetful, timeout := runtime.WithDenialMemory(trust), runtime.WithTimeout(200*time.Millisecond)
	check := func(t *testing.T, limiter *runtime.Limiter, fail func(), n int) {
		t.Helper()
		admitted := func(o runtime.Outcome) bool { return !errors.Is(o.Err, runtime.ErrLimited) }
		eventually(t, "Redis denies all callers", func() bool { // on a busy machine a call may find no answer in time
			return !slices.ContainsFunc(limiter.TakeEach(t.Context(), limits...), admitted)
		})
		time.Sleep(trust)
		fail()
		for round := range 3 {
			for i, o := range limiter.TakeEach(t.Context(), limits[:n]...) {
				if !errors.Is(o.Err, runtime.ErrLimited) || o.Source != runtime.SourceRecalled {
					t.Fatalf("round %d, caller %d: got %+v, %v", round, i, o.Decision, o.Err)
				}
			}
			denied(t, limiter, limits[round])
		}
	}
	t.Run("killed", func(t *testing.T) {
		server := redistest.Start(t)
		check(t, runtime.New(runtime.NewRedisStore(server.Client(t), timeout, forgetful), quiet), server.Kill, callers)
	})
	t.Run("another's value", func(t *testing.T) {
		server := redistest.Start(t)
		client := server.Client(t)
		check(t, runtime.New(runtime.NewRedisStore(client, timeout, forgetful), quiet), func() {
			for i := range 3 {
				ok(t, client.Set(t.Context(), fmt.Sprint("each:", i), "x", 0).Err())
			}
		}, 3)
	})
	t.Run("slots", func(t *testing.T) {
		cluster := redistest.StartCluster(t)
		store := runtime.NewRedisStore(cluster.Client(t), timeout, forgetful)
		check(t, runtime.New(store, quiet), func() {
			for i := range 3 {
				cluster.Master(i * 6000).Pause()
			}
		}, 20)
	})
}

// TestDenialOvertakes has calls on a key wait while others on it are under way,
// and wants them to be denied by what these are told: without a trip, unless
// they cost less.
func TestDenialOvertakes(t *testing.T) {
	t.Parallel()
	const crowd = 60
	server := redistest.Start(t)
	client := server.Client(t)
	count := counting(client)
	store := runtime.NewRedisStore(client, patient, runtime.WithDenialMemory(time.Hour), runtime.Linger(time.Hour))
	limiter := runtime.New(store, quiet)
	rule := &runtime.Rule{Name: "r", Prefix: "overtake:", Window: time.Hour, Max: 10}
	limit := rule.Limit(nil)
	taken(t, limiter, limit.WithCost(8))
	count.sent()

	var wait sync.WaitGroup
	var asked, recalled, admitted atomic.Int64
	take := func(cost int64) {
		wait.Go(func() {
			d, err := limiter.Take(t.Context(), limit.WithCost(cost))
			switch {
			case err == nil:
				admitted.Add(1)
			case !errors.Is(err, runtime.ErrLimited):
				t.Errorf("got %+v, %v", d, err)
			case d.Source == runtime.SourceRecalled:
				recalled.Add(1)
			default:
				asked.Add(1)
			}
		})
	}
	until := func(n int) {
		eventually(t, fmt.Sprint(n, " calls wait"), func() bool { return store.Waiting() == n })
	}
	server.Pause()
	for range 2 { // as many as can be under way
		take(5)
		time.Sleep(20 * time.Millisecond)
		until(0)
	}
	for range crowd {
		take(5)
	}
	take(1)
	until(crowd + 1)
	server.Resume()
	wait.Wait()
	if asked.Load() > 2 || asked.Load()+recalled.Load() != crowd+2 || admitted.Load() != 1 {
		t.Errorf("%d asked, %d denied from memory, %d admitted; want at most 2, %d in all, and 1", asked.Load(), recalled.Load(), admitted.Load(), crowd+2)
	}
	if trips := count.scripts(); trips > 3 {
		t.Errorf("%d trips, want at most 3", trips)
	}
}

// TestDenialRenewedAgain has the call that asks whether a denial still holds
// get no answer, and wants another one to ask later.
func TestDenialRenewedAgain(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.Start(t)
	store := runtime.NewRedisStore(server.Client(t), runtime.WithTimeout(400*time.Millisecond), runtime.WithDenialMemory(time.Millisecond))
	limiter := runtime.New(store, quiet, closed)
	limit := (&runtime.Rule{Name: "r", Prefix: "again:", Window: time.Hour, Max: 1}).Limit(nil)
	source := func(ctx context.Context) runtime.Source {
		d, err := limiter.Take(ctx, limit)
		if err != nil && !errors.Is(err, runtime.ErrLimited) && ctx.Err() == nil {
			t.Fatalf("got %+v, %v", d, err)
		}
		return d.Source
	}
	eventually(t, "Redis has denied the call", func() bool {
		return source(ctx) == runtime.SourceStore && source(ctx) == runtime.SourceRecalled
	})
	server.Pause()
	time.Sleep(2 * time.Millisecond) // the denial is no longer trusted
	gone, cancel := context.WithCancel(ctx)
	time.AfterFunc(10*time.Millisecond, cancel)
	for range 3 {
		if source(gone); gone.Err() != nil {
			break
		}
	}
	before := store.Failures()[runtime.ClassTimeout]
	if got := source(ctx); got != runtime.SourceRecalled || store.Failures()[runtime.ClassTimeout] != before+1 {
		t.Errorf("the caller that asked first has gone: decided by %v, and %v; want that another one asks in vain", got, store.Failures())
	}
	server.Resume()
	eventually(t, "another one asks", func() bool { return source(ctx) == runtime.SourceStore })
}
