package runtime_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
)

// A panicHandler panics with every line, or while it is asked whether it wants one.
type panicHandler struct{ enabled bool }

func (h panicHandler) Enabled(context.Context, slog.Level) bool {
	if h.enabled {
		panic("enabled")
	}
	return true
}
func (panicHandler) Handle(context.Context, slog.Record) error { panic("handle") }
func (h panicHandler) WithAttrs([]slog.Attr) slog.Handler      { return h }
func (h panicHandler) WithGroup(string) slog.Handler           { return h }

// counted returns which kinds of functions have panicked.
func counted(panics *recorder[observe.PanicEvent]) map[string]bool {
	in := map[string]bool{}
	for _, ev := range panics.all() {
		in[ev.In] = true
	}
	return in
}

// Functions that a goroutine of the store calls end no goroutine with a panic:
// the memory watch goes on, and so does the circuit breaker.
func TestPanicsInStoreEvents(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	var panics recorder[observe.PanicEvent]
	var memory, breaker atomic.Int64
	store := runtime.NewRedisStore(server.Client(t), runtime.WithMemoryWatch(1e-9, 10*time.Millisecond))
	limiter := runtime.New(store, runtime.WithLogger(slog.New(panicHandler{})), observing(observe.Observer{
		Memory:  func(observe.MemoryEvent) { memory.Add(1); panic("memory") },
		Breaker: func(observe.BreakerEvent) { breaker.Add(1); panic("breaker") },
		Panic:   panics.add,
	}))
	defer limiter.Close()
	defer store.Close()
	eventually(t, "the memory watch goes on", func() bool { return memory.Load() > 2 })
	server.Kill()
	eventually(t, "the breaker opens", func() bool {
		passing(t, limiter, wide.Limit(nil), 1)
		return breaker.Load() > 0
	})
	same(t, "panics", map[string]bool{"observer": true, "log handler": true}, counted(&panics))
}

// A line about a panic is written where lines still can be: by the log, or by slog.Default if
// it is the log's handler that panics. Not parallel, since it sets slog.Default.
func TestPanicOfHandlerIsLogged(t *testing.T) {
	defer slog.SetDefault(slog.Default())
	for _, enabled := range []bool{false, true} {
		var out lines
		slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
		limiter := runtime.New(nil, runtime.WithLogger(slog.New(panicHandler{enabled})))
		for i := range 20 { // each has a line of its own
			_, _ = limiter.Take(context.Background(), (&runtime.Rule{Name: fmt.Sprint("r", i), Window: time.Hour, Max: 10}).Limit(nil))
		}
		if n := strings.Count(out.String(), "panic in a function that the rate limiter was given"); n != 1 || !strings.Contains(out.String(), `in="log handler"`) {
			t.Errorf("%d lines, want 1:\n%s", n, out.String())
		}
	}
}

// TestPanickingHook has a hook of the client panic, for callers that travel alone and for such
// that share trips. The policy decides their calls, and all is well when the hook is.
func TestPanickingHook(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for name, options := range map[string]*redis.Options{"alone": runtime.TuneRedis(&redis.Options{Addr: server.Addr}), "shared": {Addr: server.Addr}} {
		client := redis.NewClient(options)
		t.Cleanup(func() { _ = client.Close() })
		var armed atomic.Bool
		client.AddHook(redistest.Hook(func(cmds []redis.Cmder, send func() error) error {
			if armed.Load() && !redistest.Connects(cmds...) {
				panic("in a hook")
			}
			return send()
		}))
		var panics recorder[observe.PanicEvent]
		limiter := runtime.New(runtime.NewRedisStore(client, patient), quiet, closed, observing(observe.Observer{Panic: panics.add}))
		limit := (&runtime.Rule{Name: name, Prefix: name + ":", Window: time.Hour, Max: 1000}).Limit(nil)
		taken(t, limiter, limit)
		armed.Store(true)
		concurrently(8, func(int) {
			for range 50 { // more than trips may be stuck
				refusedAs(t, limiter, runtime.ErrUnavailable, limit)
			}
		})
		if err := limiter.Reset(t.Context(), limit); err == nil {
			t.Errorf("%s: a reset without an answer succeeded", name)
		}
		same(t, "panics", map[string]bool{"redis client": true}, counted(&panics))
		armed.Store(false)
		eventually(t, "all is well", func() bool { _, err := limiter.Take(t.Context(), limit); return err == nil })
	}
}
