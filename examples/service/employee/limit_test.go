package employee

import (
	"errors"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// redisStore returns a store that waits longer for Redis than a busy machine
// keeps it waiting, so that no call passes because of the failure policy.
func redisStore(client redis.UniversalClient) runtime.Store {
	return runtime.NewRedisStore(client, runtime.WithTimeout(10*time.Second))
}

// newLimited returns a directory of one employee behind its limits.
func newLimited(store runtime.Store) (*RateLimitedEmployeeService, *Directory) {
	directory := NewDirectory(Employee{ID: "1001", Name: "Lin Yue", Email: "lin.yue@example.com"})
	limiter := runtime.New(store, runtime.WithFailurePolicy(runtime.FailClosed))
	return NewRateLimitedEmployeeService(directory, limiter), directory
}

func TestManyGoroutinesAdmitExactlyMax(t *testing.T) {
	stores := map[string]func(t *testing.T) runtime.Store{
		"memory": func(t *testing.T) runtime.Store { return runtime.NewMemoryStore() },
		"redis":  func(t *testing.T) runtime.Store { return redisStore(redistest.Start(t).Client(t)) },
	}
	for name, store := range stores {
		t.Run(name, func(t *testing.T) {
			svc, directory := newLimited(store(t))
			ctx := ratehttp.WithClientIP(t.Context(), netip.MustParseAddr("203.0.113.7"))
			byID := admitted(t, func() error {
				_, err := svc.GetByID(ctx, "1001")
				return err
			})
			if byID != 5 {
				t.Errorf("GetByID admitted %d calls, not its max of 5", byID)
			}
			byEmail := admitted(t, func() error {
				_, err := svc.GetByEmail(ctx, "lin.yue@example.com")
				return err
			})
			if byEmail != 100 {
				t.Errorf("GetByEmail admitted %d calls, not its max of 100", byEmail)
			}
			if reads := directory.Reads(); reads != 105 {
				t.Errorf("%d calls reached the directory, not the 105 that were admitted", reads)
			}
		})
	}
}

// admitted makes four calls from each of 64 goroutines at the same time and
// returns how many were let through.
func admitted(t *testing.T, call func() error) int64 {
	t.Helper()
	var n atomic.Int64
	var wg sync.WaitGroup
	start := make(chan struct{})
	for range 64 {
		wg.Go(func() {
			<-start
			for range 4 {
				err := call()
				if err == nil {
					n.Add(1)
				} else if !errors.Is(err, runtime.ErrLimited) {
					t.Error(err)
				}
			}
		})
	}
	close(start)
	wg.Wait()
	return n.Load()
}

// empKey is where the calls for id 1001 are counted.
const empKey = "rate_limit:emp:1001"

func TestRefusedCallLeavesNoTrace(t *testing.T) {
	client := redistest.Start(t).Client(t)
	svc, directory := newLimited(redisStore(client))
	for range 5 {
		if _, err := svc.GetByID(t.Context(), "1001"); err != nil {
			t.Fatal(err)
		}
	}
	// An hour is what the sixth call would shorten if it set the expiry anew.
	if err := client.Expire(t.Context(), empKey, time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, client)
	if len(before.events) != 5 {
		t.Fatalf("five calls left %d entries: %v", len(before.events), before.events)
	}
	_, err := svc.GetByID(t.Context(), "1001")
	var limited *runtime.LimitedError
	if !errors.As(err, &limited) || !errors.Is(err, runtime.ErrLimited) {
		t.Fatalf("the sixth call: %v", err)
	}
	if limited.Error() != "查询太快啦，喝杯茶再来" || limited.Limit != 5 || limited.Remaining != 0 ||
		limited.RetryAfter <= 0 || limited.RetryAfter > 10*time.Second {
		t.Errorf("the sixth call: %+v", limited)
	}
	after := snapshot(t, client)
	if !slices.Equal(before.events, after.events) || !slices.Equal(before.keys, after.keys) {
		t.Errorf("the sixth call left a trace:\nbefore %v\nafter  %v", before, after)
	}
	if ttl := client.TTL(t.Context(), empKey).Val(); ttl < time.Minute {
		t.Errorf("the sixth call changed the expiry to %v", ttl)
	}
	if directory.Reads() != 5 {
		t.Errorf("%d calls reached the directory, not 5", directory.Reads())
	}
}

type redisState struct {
	events []redis.Z
	keys   []string
}

func snapshot(t *testing.T, client *redis.Client) redisState {
	t.Helper()
	events, err := client.ZRangeWithScores(t.Context(), empKey, 0, -1).Result()
	keys, err2 := client.Keys(t.Context(), "*").Result()
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	return redisState{events, keys}
}
