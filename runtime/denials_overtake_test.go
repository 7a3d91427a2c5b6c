package runtime_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// TestDenialOvertakes has calls on a key wait while others on it are under way,
// and wants them to be denied by what these are told: without a trip, unless
// they cost less.
func TestDenialOvertakes(t *testing.T) {
	t.Parallel()
	const crowd = 60
	ctx := context.Background()
	server := redistest.Start(t)
	client := server.Client(t)
	var count commands
	client.AddHook(&count)
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
			d, err := limiter.Take(ctx, limit.WithCost(cost))
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
		t.Helper()
		for begin := time.Now(); store.Waiting() != n; time.Sleep(100 * time.Microsecond) {
			if time.Since(begin) > 10*time.Second {
				t.Fatalf("%d calls wait, want %d", store.Waiting(), n)
			}
		}
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
	trips := 0
	for _, sent := range count.sent() {
		if strings.HasPrefix(sent, "eval") {
			trips++
		}
	}
	if trips > 3 {
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
	for deadline := time.Now().Add(10 * time.Second); source(ctx) != runtime.SourceStore || source(ctx) != runtime.SourceRecalled; {
		if time.Now().After(deadline) {
			t.Fatal("Redis has not denied the call")
		}
	}

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
	for deadline := time.Now().Add(10 * time.Second); source(ctx) != runtime.SourceStore; {
		if time.Now().After(deadline) {
			t.Fatal("nobody asks any more")
		}
	}
}
