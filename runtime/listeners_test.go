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

	"github.com/rategen/rategen/runtime/internal/report"
)

// Events of a store reach each limiter on it, but an observer or a logger that
// several limiters share only once.
func TestListeners(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer client.Close()
	store := NewRedisStore(client)
	var out [2]bytes.Buffer
	var seen [2][]BreakerEvent
	var opts [2][]Option
	for i := range opts {
		opts[i] = []Option{
			WithLogger(slog.New(slog.NewTextHandler(&out[i], nil))),
			WithObserver(&Observer{Breaker: func(ev BreakerEvent) { seen[i] = append(seen[i], ev) }}),
		}
	}
	limiters := []*Limiter{New(store, opts[0]...), New(store, opts[1]...), New(store, opts[0]...)}
	turn := func(open bool, node string) { store.heard().breaker(node, open) }
	turn(true, "10.0.0.1:6379")
	turn(false, "")
	for i := range seen {
		if diff := cmp.Diff([]BreakerEvent{{true, "10.0.0.1:6379"}, {false, ""}}, seen[i]); diff != "" {
			t.Errorf("%d (-want +got):\n%s", i, diff)
		}
		text := out[i].String()
		if strings.Count(text, "\n") != 2 ||
			!strings.Contains(text, `level=WARN msg="rate limit store not responding: circuit breaker open" code=breaker_open server="one of several"`) ||
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
		if len(seen[0]) != step.first || len(seen[1]) != step.second {
			t.Errorf("after closing %d: told %d and %d times, want %d and %d", step.close, len(seen[0]), len(seen[1]), step.first, step.second)
		}
	}
}

// Limiters come and go while events are reported.
func TestListenersConcurrently(t *testing.T) {
	t.Parallel()
	var l report.Group[*events]
	if l.All(nobody) != nobody {
		t.Error("events without a limiter")
	}
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 200 {
				e := newEvents(slog.New(slog.DiscardHandler))
				e.observe(&Observer{Breaker: func(BreakerEvent) {}})
				l.Add(e, joined)
				l.All(nobody).breaker("", true)
				l.Remove(e, joined)
			}
		})
	}
	wait.Wait()
	if all := l.All(nobody); len(all.observers) != 0 || len(all.log.Loggers) != 0 {
		t.Errorf("%d observers are left", len(all.observers))
	}
	if !l.Add(newEvents(nil), joined) || l.Add(newEvents(nil), joined) {
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
