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
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rawstore"
	"github.com/rategen/rategen/runtime/rule"
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

// panicError panics when it is printed.
type panicError struct{}

func (panicError) Error() string { panic("error") }

// counted returns which kinds of functions have panicked.
func counted(panics *recorder[observe.PanicEvent]) map[string]bool {
	in := map[string]bool{}
	for _, ev := range panics.all() {
		in[ev.In] = true
	}
	return in
}

// Whatever a program's function does, the limiter goes on, and so do its goroutines.
func TestPanicsAreContained(t *testing.T) {
	eachCase(t, map[string]bool{"asked for its level": true, "with a line": false}, func(t *testing.T, enabled bool) {
		var panics recorder[observe.PanicEvent]
		var overrides recorder[observe.OverrideEvent]
		polls := int64(0)
		limiter := runtime.New(runtime.NewMemoryStore(),
			runtime.WithLogger(slog.New(panicHandler{enabled})),
			runtime.WithEnabled(func() bool { panic("enabled") }),
			runtime.WithOverrides(runtime.OverrideFunc(func(context.Context) (runtime.Overrides, error) {
				polls++
				if polls > 5 {
					panic("source")
				}
				if polls%2 == 0 {
					return runtime.Overrides{}, panicError{}
				}
				return overridesOf(rule.Override{Max: new(polls)}), nil
			}), time.Second),
			observing(observe.Observer{
				Decision: func(context.Context, observe.DecisionEvent) { panic("decision") },
				Failure:  func(context.Context, observe.FailureEvent) { panic("failure") },
				Override: func(observe.OverrideEvent) { panic("override") },
				Scale:    func(observe.ScaleEvent) { panic("scale") },
				Panic:    func(observe.PanicEvent) { panic("panic") },
			}),
			observing(observe.Observer{Panic: panics.add, Override: overrides.add}))
		ctx := observe.WithRecorder(context.Background(), func(observe.DecisionEvent) { panic("recorder") })
		r := &runtime.Rule{Name: "r", Window: time.Hour, Max: 1, Adaptive: scalerFunc(func(rule.Load) float64 { panic("scaler") })}
		for range 10 {
			if _, err := limiter.Take(ctx, r.Limit(nil)); err != nil && !errors.Is(err, runtime.ErrLimited) {
				t.Error(err)
			}
			_, _ = limiter.Take(ctx, r.Limit(runtime.NewKey().AddInvalid("nil")))
			time.Sleep(time.Second)
			synctest.Wait()
		}
		equal(t, "polls", polls, 11)
		// What the source said before it began to panic is in force, and that it does is told.
		if d, err := limiter.Peek(ctx, r.Limit(nil)); err != nil || d.Limit != 5 {
			t.Errorf("got %+v, %v", d, err)
		}
		if events := overrides.all(); events[len(events)-1].Err == nil {
			t.Errorf("events of overrides: %+v", events)
		}
		same(t, "panics", map[string]bool{"log handler": true, "kill switch": true, "override source": true, "observer": true, "scaler": true, "recorder": true}, counted(&panics))
		ok(t, limiter.Close())
	})
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
	var out lines
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	limiter := runtime.New(nil, runtime.WithLogger(slog.New(panicHandler{})))
	for i := range 20 { // each has a line of its own
		_, _ = limiter.Take(context.Background(), (&runtime.Rule{Name: fmt.Sprint("r", i), Window: time.Hour, Max: 10}).Limit(nil))
	}
	if n := strings.Count(out.String(), "panic in a function that the rate limiter was given"); n != 1 || !strings.Contains(out.String(), `in="log handler"`) {
		t.Errorf("%d lines, want 1:\n%s", n, out.String())
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

// A panickyStore panics when it is asked for the third time.
type panickyStore struct {
	terms.Store
	takes atomic.Int64
}

func (s *panickyStore) Take(ctx context.Context, calls []terms.Call) error {
	if s.takes.Add(1) == 3 {
		panic("store")
	}
	return s.Store.Take(ctx, calls)
}

// A call that panics waits no longer, as observers are told, and a later one is told of as if it had not.
func TestPanicWhileWaiting(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var waits recorder[observe.WaitEvent]
		memory := runtime.NewMemoryStore()
		limiter := runtime.New(rawstore.New(&panickyStore{Store: rawstore.Wrap(memory).Store}, memory), quiet, observing(observe.Observer{Wait: withContext(waits.add)}))
		limit := (&runtime.Rule{Name: "r", Window: time.Second, Max: 1, Wait: time.Second}).Limit(nil)
		taken(t, limiter, limit)
		for range 3 { // the first waits in vain, the second need not wait, and the third does
			func() {
				defer func() { _ = recover() }()
				_, _ = limiter.Take(t.Context(), limit)
			}()
		}
		begun, over := observe.WaitEvent{Rule: "r", Waiting: true}, observe.WaitEvent{Rule: "r", Waited: time.Second}
		admitted := over
		admitted.Admitted = true
		same(t, "waits", []observe.WaitEvent{begun, over, begun, admitted}, waits.all())
	})
}
