package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rawstore"
)

// TestForbiddenKey has callers share trips of whom a few name keys that Redis
// forbids the client's user: they alone fail, and all others are charged once.
func TestForbiddenKey(t *testing.T) {
	t.Parallel()
	const callers, keys, most = 60, 20, 2
	ctx := context.Background()
	server := redistest.Start(t)
	if err := server.Client(t).Do(ctx, "ACL", "SETUSER", "limiter", "on", "nopass", "~free:*", "+@all").Err(); err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: server.Addr, Username: "limiter", Password: "any"})
	t.Cleanup(func() { _ = client.Close() })
	store := runtime.NewRedisStore(client, patient, atOnce)
	rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: most}
	take := func(key string) (terms.Result, error) {
		calls := []rawstore.Call{{Charges: []rawstore.Charge{{Rule: rule, Key: []byte(key), Max: most, Cost: 1}}}}
		err := errors.Join(rawstore.On(store).Take(ctx, calls), calls[0].Err)
		return calls[0].Charges[0].Result, err
	}
	if _, err := take("free:"); err != nil {
		t.Fatal(err)
	}
	server.Pause()
	var admitted [keys]atomic.Int64
	var wait sync.WaitGroup
	for range 2 { // as many trips as are under way at a time, so that all others wait
		wait.Go(func() { _, _ = take("free:") })
		time.Sleep(10 * time.Millisecond)
	}
	for i := range callers {
		wait.Go(func() {
			result, err := take(fmt.Sprint("free:", i%keys))
			if err != nil {
				t.Errorf("call on key %d: %v", i%keys, err)
			}
			if result.Allowed {
				admitted[i%keys].Add(1)
			}
		})
		if i%10 == 0 {
			wait.Go(func() {
				if _, err := take(fmt.Sprint("forbidden:", i)); runtime.ClassOf(err) != runtime.ClassAuth {
					t.Errorf("call on a forbidden key: %v", err)
				}
			})
		}
	}
	for until := time.Now().Add(2 * time.Second); store.Waiting() < callers && time.Now().Before(until); {
		time.Sleep(time.Millisecond)
	}
	server.Resume()
	wait.Wait()
	for i := range admitted {
		if n := admitted[i].Load(); n != most {
			t.Errorf("key %d: %d admitted, want %d", i, n, most)
		}
	}
}
