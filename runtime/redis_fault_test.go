package runtime_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// TestAtMostOnce lets the client time out and retry as it does by default: a
// call is charged once all the same, or not at all.
func TestAtMostOnce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.Start(t)
	direct := server.Client(t)
	const calls = 20
	client := server.Client(t, func(o *redis.Options) {
		o.ReadTimeout = 20 * time.Millisecond // and MaxRetries is 3
		o.PoolSize = calls
	})
	newLimiter := func() *runtime.Limiter { // each has its own trips
		return onRedis(client)
	}
	limiter := onRedis(direct)
	limit := (&runtime.Rule{Name: "r", Window: time.Hour, Max: 1000}).Limit(key("k"))
	taken(t, limiter, limit)
	before := executions(t, direct)
	warm(t, client, calls)

	server.Pause()
	var wait sync.WaitGroup
	for range calls {
		wait.Go(func() {
			if _, err := newLimiter().Take(ctx, limit); !errors.Is(err, runtime.ErrUnavailable) {
				t.Errorf("a paused server: %v", err)
			}
		})
	}
	wait.Wait()
	server.Resume()
	// What was sent is executed now.
	eventually(t, "a call is executed", func() bool { return executions(t, direct) > before })
	for until := time.Now().Add(slack); executions(t, direct) < before+calls && time.Now().Before(until); {
		time.Sleep(time.Millisecond)
	}
	executed := executions(t, direct) - before
	if executed < 1 || executed > calls {
		t.Errorf("%d calls were executed %d times", calls, executed)
	}
	d, err := limiter.Peek(ctx, limit)
	if charged := 999 - d.Remaining; err != nil || charged > calls {
		t.Errorf("%d calls were charged %d times (%v)", calls, charged, err)
	}
	t.Logf("%d calls, %d executions, %d charged", calls, executed, 999-d.Remaining)
}
