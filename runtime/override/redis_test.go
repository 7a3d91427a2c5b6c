package override

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
)

// A hash that is too large, or none, is an error that says so.
func TestRedis(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := redistest.Start(t).Client(t)
	client.HSet(ctx, "limits", "big", `{"max": 5`+strings.Repeat(" ", maxBytes)+`}`)
	if _, err := look(Redis(client, "limits")); err == nil || !strings.Contains(err.Error(), "bytes, the most is 16777216") {
		t.Errorf("a long field: %v", err)
	}
	fields := make(map[string]any)
	for i := range maxRules + 1 {
		fields[fmt.Sprint(i)] = `{}`
	}
	client.HSet(ctx, "many", fields)
	if _, err := look(Redis(client, "many")); err == nil || !strings.Contains(err.Error(), "10001 rules, the most is 10000") {
		t.Errorf("many fields: %v", err)
	}
	client.Set(ctx, "text", "{}", 0)
	if _, err := look(Redis(client, "text")); err == nil || !strings.Contains(err.Error(), "write a hash with HSET") {
		t.Errorf("not a hash: %v", err)
	}
}

// A limiter keeps what it had while Redis gives no answer, and ends at once.
func TestRedisLimiter(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.Start(t)
	direct := server.Client(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr, ReadTimeout: 2 * time.Second, MaxRetries: -1})
	defer client.Close()
	direct.HSet(ctx, "limits", "r", `{"max": 2}`)
	seen := make(chan observe.OverrideEvent, 100)
	limiter := runtime.New(runtime.NewMemoryStore(), runtime.WithLogger(slog.New(slog.DiscardHandler)),
		runtime.WithOverrides(Redis(client, "limits"), 5*time.Millisecond),
		runtime.WithObserver(&observe.Observer{Override: func(ev observe.OverrideEvent) { seen <- ev }}))
	defer limiter.Close()
	next := func() observe.OverrideEvent {
		t.Helper()
		select {
		case ev := <-seen:
			return ev
		case <-time.After(time.Minute):
			t.Fatal("nothing is told")
		}
		panic("unreachable")
	}
	limit := func() int64 {
		d, _ := limiter.Peek(ctx, (&runtime.Rule{Name: "r", Window: time.Hour, Max: 5}).Limit(nil))
		return d.Limit
	}
	good := func() { // a busy machine may take longer than a look
		t.Helper()
		for next().Err != nil {
		}
	}
	good()
	if limit() != 2 {
		t.Errorf("at first: a limit of %d", limit())
	}
	direct.HSet(ctx, "limits", "r", `{"max": 3}`)
	good()
	if limit() != 3 {
		t.Errorf("changed: a limit of %d", limit())
	}
	server.Pause()
	if ev := next(); !errors.Is(ev.Err, context.DeadlineExceeded) && runtime.ClassOf(ev.Err) != observe.ClassTimeout || errors.Is(ev.Err, runtime.ErrInvalidOverrides) || limit() != 3 || ev.Rules != 1 {
		t.Errorf("frozen: %+v, a limit of %d", ev, limit())
	}
	if err := limiter.Close(); err != nil {
		t.Errorf("close while Redis is frozen: %v", err)
	}
	server.Resume()
}

// A frozen Redis holds up one read, and not one more for each look.
func TestRedisFrozen(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr, ReadTimeout: time.Minute, MaxRetries: -1})
	source := Redis(client, "limits")
	if _, err := look(source); err != nil {
		t.Fatal(err)
	}
	server.Pause()
	var looks sync.WaitGroup
	for range 20 {
		looks.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
			defer cancel()
			if _, err := source.Overrides(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		})
	}
	looks.Wait()
	if got := client.PoolStats().TotalConns - client.PoolStats().IdleConns; got != 1 {
		t.Errorf("%d connections in use, want 1", got)
	}
	server.Resume()
	if _, err := look(source); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
}

// A panic in the client is contained like one in a source, and does not keep
// the next look from being made.
func TestRedisPanics(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer client.Close()
	client.AddHook(redistest.Hook(func([]redis.Cmder, func() error) error { panic("the hook has panicked") }))
	seen := make(chan string, 10)
	limiter := runtime.New(nil, runtime.WithLogger(slog.New(slog.DiscardHandler)),
		runtime.WithOverrides(Redis(client, "limits"), time.Millisecond),
		runtime.WithObserver(&observe.Observer{Panic: func(ev observe.PanicEvent) {
			select {
			case seen <- ev.In:
			default:
			}
		}}))
	for range 3 {
		if in := <-seen; in != "override source" {
			t.Errorf("told of a panic in %q", in)
		}
	}
	if err := limiter.Close(); err != nil {
		t.Error(err)
	}
}

// When the master dies that has the hash, source and editor go on with its replica in
// seconds, though the client by itself would ask the dead one for a minute.
func TestHashAfterFailover(t *testing.T) {
	if !effort.More() {
		t.Skip("waits until a replica takes over")
	}
	t.Parallel()
	ctx := context.Background()
	cluster := redistest.StartCluster(t)
	victim := cluster.Master(cluster.Slot("limits"))
	client := cluster.Client(t)
	source, editor := Redis(client, "limits"), NewEditor(client, "limits")
	edit := toMax(7)
	edit.Target = ofRule("r")
	if _, err := editor.Edit(ctx, edit); err != nil {
		t.Fatal(err)
	}
	wantMax(t, source, 7)
	if n, err := victim.Client(t).Do(ctx, "WAIT", 1, 30_000).Int(); err != nil || n < 1 {
		t.Fatalf("no replica has the hash: %d, %v", n, err)
	}
	victim.Kill()
	begin := time.Now()
	for {
		asking, cancel := context.WithTimeout(ctx, time.Second)
		_, err := source.Overrides(asking)
		cancel()
		if err == nil {
			break
		}
		if time.Since(begin) > 40*time.Second { // the client's own way takes 60 s
			t.Fatalf("after %v: %v", time.Since(begin), err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	wantMax(t, source, 7)
	edit.Set.Max = new(int64(8))
	if _, err := editor.Edit(ctx, edit); err != nil {
		t.Error(err)
	}
	wantMax(t, source, 8)
}
