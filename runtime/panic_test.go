package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// A panicHandler panics with every line, or while it is asked whether it wants
// one.
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

// panicError panics when it is printed.
type panicError struct{}

func (panicError) Error() string { panic("error") }

// panicScaler panics when it is called.
type panicScaler struct{}

func (panicScaler) Factor(runtime.Load) float64 { panic("scaler") }

// counted returns how often each kind of function has panicked.
func counted(panics *recorder[runtime.PanicEvent]) map[string]bool {
	in := map[string]bool{}
	for _, ev := range panics.all() {
		in[ev.In] = true
	}
	return in
}

// Whatever a program's function does, the limiter goes on, and so do its
// goroutines.
func TestPanicsAreContained(t *testing.T) {
	t.Parallel()
	for _, enabled := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var panics recorder[runtime.PanicEvent]
			var polls atomic.Int64
			var fail atomic.Bool
			limiter := runtime.New(runtime.NewMemoryStore(),
				runtime.WithLogger(slog.New(panicHandler{enabled})),
				runtime.WithEnabled(func() bool { panic("enabled") }),
				runtime.WithOverrides(runtime.OverrideFunc(func(context.Context) (runtime.Overrides, error) {
					n := polls.Add(1)
					if fail.Load() {
						panic("source")
					}
					if n%2 == 0 {
						return runtime.Overrides{}, panicError{}
					}
					return runtime.Overrides{Rules: map[string]runtime.Override{"r": {Max: new(n)}}}, nil
				}), time.Second),
				observing(runtime.Observer{
					Decision: func(context.Context, runtime.DecisionEvent) { panic("decision") },
					Failure:  func(context.Context, runtime.FailureEvent) { panic("failure") },
					Override: func(runtime.OverrideEvent) { panic("override") },
					Scale:    func(runtime.ScaleEvent) { panic("scale") },
					Panic:    func(runtime.PanicEvent) { panic("panic") },
				}),
				observing(runtime.Observer{Panic: panics.add}))
			ctx := runtime.WithRecorder(context.Background(), func(runtime.DecisionEvent) { panic("recorder") })
			rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 1, Adaptive: panicScaler{}}
			for i := range 10 {
				if i == 5 {
					fail.Store(true)
				}
				_, err := limiter.Take(ctx, rule.Limit(nil))
				if err != nil && !errors.Is(err, runtime.ErrLimited) {
					t.Error(err)
				}
				_, _ = limiter.Take(ctx, rule.Limit(runtime.NewKey().AddInvalid("nil")))
				time.Sleep(time.Second)
				synctest.Wait()
			}
			if polls.Load() < 10 {
				t.Errorf("the source was polled %d times only", polls.Load())
			}
			want := map[string]bool{"log handler": true, "kill switch": true, "override source": true, "observer": true, "scaler": true, "recorder": true}
			same(t, "panics", want, counted(&panics))
			ok(t, limiter.Close())
		})
	}
}

// Functions that a goroutine of the store calls end no goroutine with a panic:
// the memory watch goes on, and so does the circuit breaker.
func TestPanicsInStoreEvents(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	var panics recorder[runtime.PanicEvent]
	memory, breaker := make(chan struct{}, 1000), make(chan struct{}, 1000)
	store := runtime.NewRedisStore(server.Client(t), runtime.WithMemoryWatch(1e-9, 10*time.Millisecond))
	limiter := runtime.New(store, runtime.WithLogger(slog.New(panicHandler{})), observing(runtime.Observer{
		Memory:  func(runtime.MemoryEvent) { memory <- struct{}{}; panic("memory") },
		Breaker: func(runtime.BreakerEvent) { breaker <- struct{}{}; panic("breaker") },
		Panic:   panics.add,
	}))
	defer limiter.Close()
	defer store.Close()
	rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 10}
	for range 3 {
		<-memory
	}
	server.Kill()
	eventually(t, "the breaker opens", func() bool {
		if _, err := limiter.Take(context.Background(), rule.Limit(nil)); err != nil && !errors.Is(err, runtime.ErrLimited) {
			t.Fatal(err)
		}
		return len(breaker) > 0
	})
	same(t, "panics", map[string]bool{"observer": true, "log handler": true}, counted(&panics))
}

// A line about a panic is written where lines still can be: by the log, or by
// slog.Default if it is the log's handler that panics. Not parallel, since it
// sets slog.Default.
func TestPanicOfHandlerIsLogged(t *testing.T) {
	var out lines
	old := slog.Default()
	defer slog.SetDefault(old)
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	limiter := runtime.New(nil, runtime.WithLogger(slog.New(panicHandler{})))
	rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 10}
	for i := range 20 {
		rule := *rule
		rule.Name = fmt.Sprint("r", i) // each has a line of its own
		_, _ = limiter.Take(context.Background(), rule.Limit(nil))
	}
	if n := strings.Count(out.String(), "panic in a function that the rate limiter was given"); n != 1 || !strings.Contains(out.String(), `in="log handler"`) {
		t.Errorf("%d lines, want 1:\n%s", n, out.String())
	}
}

// TestPanickingHook has a hook of the client panic, for callers that travel
// alone and for such that share trips. The policy decides their calls, and all
// is well when the hook is.
func TestPanickingHook(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for name, tuned := range map[string]bool{"alone": true, "shared": false} {
		options := &redis.Options{Addr: server.Addr}
		if tuned {
			runtime.TuneRedis(options)
		}
		client := redis.NewClient(options)
		t.Cleanup(func() { _ = client.Close() })
		var armed atomic.Bool
		client.AddHook(hook(func(cmds []redis.Cmder, send func() error) error {
			if armed.Load() && !connects(cmds...) {
				panic("in a hook")
			}
			return send()
		}))
		var seen atomic.Int64
		observer := &runtime.Observer{Panic: func(ev runtime.PanicEvent) {
			if ev.In == "redis client" {
				seen.Add(1)
			}
		}}
		limiter := runtime.New(runtime.NewRedisStore(client, patient), quiet, closed, runtime.WithObserver(observer))
		rule := &runtime.Rule{Name: name, Prefix: name + ":", Window: time.Hour, Max: 1000}
		taken(t, limiter, rule.Limit(nil))
		armed.Store(true)
		concurrently(8, func(int) {
			for range 50 { // more than trips may be stuck
				if _, err := limiter.Take(t.Context(), rule.Limit(nil)); !errors.Is(err, runtime.ErrUnavailable) {
					t.Errorf("%s: got %v", name, err)
				}
			}
		})
		if err := limiter.Reset(t.Context(), rule.Limit(key("k"))); err == nil {
			t.Errorf("%s: a reset without an answer succeeded", name)
		}
		if seen.Load() == 0 {
			t.Errorf("%s: the observer was not told of a panic", name)
		}
		armed.Store(false)
		eventually(t, "all is well", func() bool { _, err := limiter.Take(t.Context(), rule.Limit(nil)); return err == nil })
	}
}
