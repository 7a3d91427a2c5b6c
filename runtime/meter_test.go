package runtime_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
)

// Where a budget has too little to take in advance nobody is refused, and nobody hears of it.
func TestMeterTellsOfRefusals(t *testing.T) {
	bubble(t, func(t *testing.T) {
		formed, recorded := 0, 0
		limiter := inMemory(runtime.WithRefusalError(func(_ context.Context, err error) error {
			formed++
			return fmt.Errorf("refused: %w", err)
		}))
		ctx := observe.WithRefusalRecorder(t.Context(), func(observe.Refusal) { recorded++ })
		limit := (&runtime.Rule{Name: "r", Algorithm: runtime.FixedWindow, Window: time.Hour, Max: 100}).Limit(nil)
		m, other := limiter.Meter(ctx, taken(t, limiter, limit), 0), metered(t, limiter, limit)
		charge(t, m, 20, time.Millisecond, 1)
		ok(t, other.Charge(78))
		equal(t, "passed", used(t, m, time.Millisecond, 1), 2)
		same(t, "formed and recorded", [2]int{1, 1}, [2]int{formed, recorded})
		m.Close()
	})
}

// A reader ends at the last byte that is paid, in few trips.
func TestMeterReader(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 999, 5000, 70_000, 70_001, 200_000} {
		synctest.Test(t, func(t *testing.T) {
			limiter, store := onFake()
			limit := perDay(70_000).Limit(nil)
			m := metered(t, limiter, limit)
			r := m.Reader(bytes.NewReader(make([]byte, size)), func(n int) []int64 { return []int64{int64(n)} })
			n, err := io.Copy(io.Discard, struct{ io.Reader }{r})
			if want := min(int64(size), 70_000); n != want || (err != nil) != (size > 70_000) || err != nil && !errors.Is(err, runtime.ErrLimited) {
				t.Errorf("%d of %d bytes, %v", n, size, err)
			}
			ok(t, r.Close())
			ok(t, limiter.Close())
			wantLeft(t, limiter, limit, 70_000-n)
			if trips := store.trips(); trips > 120 {
				t.Errorf("%d bytes in %d trips", size, trips)
			}
		})
	}
}

// A context that ends while a message is charged in parts leaves nothing charged.
func TestMeterInPartsEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		limiter, store := onFake()
		log := perHour(10_000).Limit(nil)
		ctx, cancel := context.WithCancel(t.Context())
		m, before := limiter.Meter(ctx, taken(t, limiter, log), 0), store.trips()
		store.delay = 100 * time.Millisecond
		time.AfterFunc(250*time.Millisecond, cancel)
		wantError(t, "cancelled", m.Charge(2001), context.Canceled)
		store.delay = 0
		between(t, "trips of a call that was cancelled", store.trips()-before, 2, 5)
		m.Close()
		time.Sleep(time.Second)
		wantLeft(t, limiter, log, 10_000)
	})
}

// used charges a meter until it refuses, and returns how often it did not.
func used(t testing.TB, m *runtime.Meter, pause time.Duration, costs ...int64) (n int64) {
	t.Helper()
	for {
		err := m.Charge(costs...)
		if errors.Is(err, runtime.ErrLimited) {
			if again := m.Charge(costs...); again != err {
				t.Fatalf("after %v it says %v", err, again)
			}
			return n
		}
		ok(t, err)
		n++
		time.Sleep(pause)
	}
}

// charge charges a meter for so many messages, which must pass.
func charge(t testing.TB, m *runtime.Meter, messages int, pause time.Duration, costs ...int64) {
	t.Helper()
	for range messages {
		ok(t, m.Charge(costs...))
		time.Sleep(pause)
	}
}
