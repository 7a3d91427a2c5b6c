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

// testAway wants every failure policy to decide within the store's timeout
// while the server gives no answer. The client has its default options, with
// which go-redis itself would take seconds.
func testAway(t *testing.T, client *redis.Client) {
	ctx := context.Background()
	rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 2}
	for _, test := range []struct {
		policy   runtime.FailurePolicy
		admitted int
		err      error
	}{
		{runtime.FailOpen, 4, nil},
		{runtime.FailClosed, 0, runtime.ErrUnavailable},
		{runtime.FailLocal, 2, runtime.ErrLimited},
	} {
		limiter := runtime.New(runtime.NewRedisStore(client), quiet, runtime.WithFailurePolicy(test.policy))
		for i := range 4 {
			begin := time.Now()
			_, err := limiter.Take(ctx, rule.Limit(nil))
			if took := time.Since(begin); took > runtime.DefaultTimeout+slack {
				t.Errorf("%v: call %d took %v", test.policy, i, took)
			}
			if (err == nil) != (i < test.admitted) || err != nil && !errors.Is(err, test.err) {
				t.Errorf("%v: call %d: %v", test.policy, i, err)
			}
		}
		begin := time.Now()
		if _, err := limiter.Peek(ctx, rule.Limit(nil)); !errors.Is(err, runtime.ErrUnavailable) {
			t.Errorf("peek: %v", err)
		}
		if err := limiter.Reset(ctx, rule.Limit(nil)); err == nil {
			t.Error("reset: no error")
		}
		if took := time.Since(begin); took > 2*runtime.DefaultTimeout+slack {
			t.Errorf("peek and reset took %v", took)
		}
	}
}

func TestPausedServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client(t)
	server.Pause()
	testAway(t, client)
	server.Resume()
}

func TestDeadServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client(t)
	server.Kill()
	testAway(t, client)
	// And when it is there again, it decides again.
	server.Restart()
	limiter := onRedis(client)
	if d, err := limiter.Take(context.Background(), (&runtime.Rule{Name: "r", Window: time.Hour, Max: 2}).Limit(key("k"))); err != nil || d.Source != runtime.SourceStore {
		t.Errorf("restarted: got %+v, %v", d, err)
	}
}

// TestContextCancelledMeanwhile wants a call to end with its context, which is
// nobody's failure: no policy has a say.
func TestContextCancelledMeanwhile(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client(t)
	server.Pause()
	limiter := runtime.New(runtime.NewRedisStore(client, patient), quiet)
	limit := (&runtime.Rule{Name: "r", Window: time.Hour, Max: 2}).Limit(nil)

	ctx, cancel := context.WithCancel(context.Background())
	timer := time.AfterFunc(20*time.Millisecond, cancel)
	defer timer.Stop()
	begin := time.Now()
	if d, err := limiter.Take(ctx, limit); err != context.Canceled || d.Allowed || time.Since(begin) > slack {
		t.Errorf("cancelled: got %+v, %v after %v", d, err, time.Since(begin))
	}
	ctx, cancel = context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	begin = time.Now()
	if d, err := limiter.Take(ctx, limit); err != context.DeadlineExceeded || d.Allowed || time.Since(begin) > slack {
		t.Errorf("deadline: got %+v, %v after %v", d, err, time.Since(begin))
	}
	server.Resume()
}

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
