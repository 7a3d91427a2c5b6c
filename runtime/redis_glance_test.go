package runtime_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rawstore"
)

// TestGiveUp has callers wait for a Redis that does not answer, together, and
// each give up in its own way at its own time. They get the error of their
// context long before the store's timeout is over, and those who do not give up
// are decided when Redis is back.
func TestGiveUp(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	store := runtime.NewRedisStore(server.Client(t), patient)
	rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 1000}
	take := func(ctx context.Context) error {
		calls := single(rule, "give up", 1)
		return errors.Join(rawstore.On(store).Take(ctx, calls), calls[0].Err)
	}
	if err := take(context.Background()); err != nil {
		t.Fatal(err)
	}
	server.Pause()
	defer server.Resume()
	var leave, stay sync.WaitGroup
	for i := range 40 {
		after := time.Duration(i) * time.Millisecond / 2 // before the first look at the context, and after
		leave.Go(func() {
			ctx, cancel := context.WithCancel(context.Background())
			defer time.AfterFunc(after, cancel).Stop()
			defer cancel()
			if err := take(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled after %v: got %v", after, err)
			}
		})
		leave.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), after)
			defer cancel()
			if err := take(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("ends after %v: got %v", after, err)
			}
		})
		stay.Go(func() {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			if err := take(ctx); err != nil {
				t.Errorf("who stays: got %v", err)
			}
		})
	}
	begin := time.Now()
	leave.Wait()
	t.Logf("all are gone after %v", time.Since(begin))
	server.Resume()
	stay.Wait()
}
