package runtime

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
)

// Events of a store reach each limiter on it, but an observer or a logger that
// several limiters share only once.
func TestListeners(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer client.Close()
	store := NewRedisStore(client)
	var out [2]bytes.Buffer
	var told [2][]BreakerEvent
	var opts [2][]Option
	for i := range opts {
		opts[i] = []Option{
			WithLogger(slog.New(slog.NewTextHandler(&out[i], nil))),
			WithObserver(&Observer{Breaker: func(ev BreakerEvent) { told[i] = append(told[i], ev) }}),
		}
	}
	limiters := []*Limiter{New(store, opts[0]...), New(store, opts[1]...), New(store, opts[0]...)}
	turn := func(open bool, node string) { store.listeners.Load().breaker(node, open) }
	turn(true, "10.0.0.1:6379")
	turn(false, "")
	for i := range told {
		if diff := cmp.Diff([]BreakerEvent{{true, "10.0.0.1:6379"}, {false, ""}}, told[i]); diff != "" {
			t.Errorf("%d (-want +got):\n%s", i, diff)
		}
		text := out[i].String()
		if strings.Count(text, "\n") != 2 ||
			!strings.Contains(text, `level=WARN msg="rate limit store not responding: circuit breaker open" server="one of several"`) ||
			!strings.Contains(text, `level=INFO msg="rate limit store responding again: circuit breaker closed"`+"\n") {
			t.Errorf("%d: logged\n%s", i, text)
		}
	}
	// A closed limiter hears no more. The other one of the same options does.
	for _, step := range []struct{ close, first, second int }{{0, 3, 3}, {1, 4, 3}, {2, 4, 3}} {
		for range 2 {
			if err := limiters[step.close].Close(); err != nil {
				t.Error(err)
			}
		}
		turn(true, "")
		if len(told[0]) != step.first || len(told[1]) != step.second {
			t.Errorf("after closing %d: told %d and %d times, want %d and %d", step.close, len(told[0]), len(told[1]), step.first, step.second)
		}
	}
}

// Limiters come and go while events are reported.
func TestListenersConcurrently(t *testing.T) {
	t.Parallel()
	var l listeners
	if l.Load() != nil {
		t.Error("events without a limiter")
	}
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 200 {
				e := newEvents(slog.New(slog.DiscardHandler))
				e.observe(&Observer{Breaker: func(BreakerEvent) {}})
				l.add(e)
				l.Load().breaker("", true)
				l.remove(e)
			}
		})
	}
	wait.Wait()
	if joined := l.Load(); len(joined.observers) != 0 || len(joined.log.Loggers) != 0 {
		t.Errorf("%d observers are left", len(joined.observers))
	}
	if !l.add(newEvents(nil)) || l.add(newEvents(nil)) {
		t.Error("add does not know the first one")
	}
}

// Nothing is looked up in a context before some context has a recorder.
func TestRecordersOf(t *testing.T) {
	ctx := context.WithValue(context.Background(), recorderKey{}, &recorder{})
	was := recording.Swap(false)
	if recordersOf(ctx) != nil {
		t.Error("the context was asked")
	}
	recording.Store(true)
	if recordersOf(ctx) == nil {
		t.Error("the context was not asked")
	}
	recording.Store(was)
}
