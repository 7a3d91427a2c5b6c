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

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
	"github.com/rategen/rategen/runtime/wrapper"
)

// A limit in shadow mode never stops a call, and has counted what it had room for; another
// limit of the call is exact.
func TestMeterInShadow(t *testing.T) {
	t.Parallel()
	for _, mode := range []runtime.Mode{runtime.ModeShadow, runtime.ModeSoft} {
		synctest.Test(t, func(t *testing.T) {
			limiter, store := onFake()
			shadow, rule := perDay(100), perDay(5000)
			shadow.Name, shadow.Mode = "s", mode
			ctx := wrapper.WithExceeded(context.Background())
			d, err := limiter.Take(ctx, shadow.Limit(nil), rule.Limit(nil))
			ok(t, err)
			m := limiter.Meter(ctx, d, 0, 0)
			equal(t, "passed", used(t, m, 10*time.Millisecond, 1, 1), 5000)
			m.Close()
			ok(t, limiter.Close())
			if trips := store.trips(); trips > 500 {
				t.Errorf("%d trips", trips)
			}
			wantLeft(t, limiter, rule.Limit(nil), 0)
			wantLeft(t, limiter, shadow.Limit(nil), 0)
			shadow.Max = 1 // which never has room for a message
			m = metered(t, limiter, shadow.Limit(key("k")), rule.Limit(key("k")))
			charge(t, m, 2, time.Millisecond, 5, 5)
			between(t, "in advance beside it", m.Advance(1), 1, 40)
			m.Close()
			equal(t, "errors that are kept for the call", len(runtime.Exceeded(ctx)), 0)
		})
	}
}

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

// A rule with a Wait lets a message wait for room. A queue gives each message its turn.
func TestMeterWaits(t *testing.T) {
	t.Parallel()
	for algorithm, want := range map[runtime.Algorithm]time.Duration{runtime.TokenBucket: 100 * time.Second, runtime.LeakyBucket: 110 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			var waits recorder[observe.WaitEvent]
			limiter, _ := onFake(observing(observe.Observer{Wait: withContext(waits.add)}))
			rule := &runtime.Rule{Name: "r", Algorithm: algorithm, Window: time.Second, Max: 10, Burst: 100, Wait: 5 * time.Second}
			ctx, cancel := context.WithCancel(context.Background())
			m := limiter.Meter(ctx, taken(t, limiter, rule.Limit(nil), wide.Limit(nil)), 0)
			took := elapsed(func() { charge(t, m, 1100, 0, 1, 1) })
			if took < want-2*time.Second || took > want+2*time.Second {
				t.Errorf("%v: 1100 messages took %v, want %v", algorithm, took, want)
			}
			charge(t, m, 2, 200*time.Millisecond, 1)
			equal(t, "in advance of a queue", algorithm == runtime.LeakyBucket && m.Advance(0) > 0, false)
			ok(t, m.Charge(40))
			time.AfterFunc(time.Second, cancel)
			equal(t, "time until the call has ended", elapsed(func() { wantError(t, "the last message", m.Charge(40, 1000), context.Canceled) }), time.Second)
			all := waits.all()
			for i, ev := range all {
				if ev.Waiting != (i%2 == 0) || ev.Admitted != (i%2 == 1 && i < len(all)-1) {
					t.Fatalf("event %d of %d: %+v", i, len(all), ev)
				}
			}
			m.Close()
			ok(t, limiter.Close())
		})
	}
}

// Other limits of the call are settled by Close, and permits returned, also after a refusal.
// What Take alone has charged is settled at what Close is told, also after a refusal; what was
// used of others stays.
func TestMeterSettlesOthers(t *testing.T) {
	t.Parallel()
	permits := &runtime.Rule{Name: "p", Algorithm: runtime.Concurrency, Window: time.Minute, Max: 2}
	for _, refuse := range []bool{false, true} {
		limiter := inMemory()
		requests := &runtime.Rule{Name: "q", Window: time.Hour, Max: 10}
		tokens := &runtime.Rule{Name: "t", Window: time.Hour, Max: 20}
		d := taken(t, limiter, permits.Limit(nil), requests.Limit(nil).WithCost(3), tokens.Limit(nil).WithCost(4))
		m := limiter.Meter(context.Background(), d, -1, -1, 0)
		ok(t, m.Charge(0, 0, 5))
		if refuse {
			wantError(t, "too much", m.Charge(0, 8, 16), runtime.ErrLimited)
		}
		wantLeft(t, limiter, permits.Limit(nil), 1)
		m.Close(-1, 1, 0)
		for limit, want := range map[*runtime.Rule]int64{permits: 2, requests: 9, tokens: 15} {
			wantLeft(t, limiter, limit.Limit(nil), want)
		}
		same(t, "in flight", map[string]int64{"p": 0}, bridge.LimiterOf(limiter).Permits())
	}
	m := metered(t, inMemory(), permits.Limit(nil))
	wantError(t, "permits that grow", m.Charge(1), runtime.ErrInvalidLimit)
	m.Close()

	var failures recorder[observe.FailureEvent]
	limiter := inMemory(observing(observe.Observer{Failure: withContext(failures.add)}))
	m = limiter.Meter(context.Background(), taken(t, limiter, perHour(10).Limit(nil)))
	m.Close(rule.MaxLogCost + 2)
	if told := failures.all(); len(told) != 1 || !told[0].Settling || !errors.Is(told[0].Err, runtime.ErrInvalidLimit) {
		t.Errorf("a cost that cannot be: %+v", told)
	}
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

// A message that costs more than a limit takes at once is charged in parts: all of it, or
// nothing, and beside other limits.
func TestMeterInParts(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for name, store := range map[string]runtime.Store{"memory": runtime.NewMemoryStore(), "redis": runtime.NewRedisStore(server.Client(t), patient)} {
		for _, storage := range []runtime.Storage{runtime.StorageZSET, runtime.StoragePacked} {
			for _, cost := range []int64{1, 249, 250, 251, 252, 500, 501, 750, 999, 1000, 1001} {
				t.Run(fmt.Sprint(name, storage, cost), func(t *testing.T) {
					limits := make([]runtime.Limit, 3)
					for i, r := range []runtime.Rule{
						{Name: "log", Max: 1000, Storage: storage},
						{Name: "other", Max: 2000, Algorithm: runtime.FixedWindow},
						{Name: "shadow", Max: 1000, Storage: storage, Mode: runtime.ModeShadow},
					} {
						r.Name, r.Window = r.Name+t.Name(), time.Hour
						limits[i] = r.Limit(nil)
					}
					limiter := runtime.New(store, quiet)
					m := metered(t, limiter, limits...)
					messages := int64(0)
					for ; (messages+1)*cost <= 1000; messages++ {
						ok(t, m.Charge(cost, 2, cost))
					}
					err := m.Charge(cost, 2, cost)
					wantError(t, "what has no room", err, runtime.ErrLimited)
					m.Close()
					ok(t, limiter.Close())
					for i, want := range []int64{1000 - messages*cost, 2000 - messages*2, 1000 - messages*cost} {
						equal(t, fmt.Sprint("left of ", i), left(t, runtime.New(store, quiet), limits[i]), want)
					}
				})
			}
		}
	}
}

// A message for which the load leaves no room is refused, and not invalid.
func TestMeterInPartsUnderLoad(t *testing.T) {
	t.Parallel()
	limiter := inMemory()
	rule := &runtime.Rule{Name: "log", Window: time.Hour, Max: 900, Adaptive: always(0.5)}
	adapt(t, limiter, rule, 0.5)
	m := metered(t, limiter, rule.Limit(nil))
	wantError(t, "what has no room", m.Charge(700), runtime.ErrLimited)
	m.Close()
	wantLeft(t, limiter, rule.Limit(nil), 450)
}

// The other limits of a message have their say about the whole of it, whichever part of it
// comes first, and a context that ends meanwhile leaves nothing charged.
func TestMeterInPartsBeside(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limiter, store := onFake()
		log := (&runtime.Rule{Name: "log", Window: time.Hour, Max: 10_000}).Limit(nil)
		small := (&runtime.Rule{Name: "small", Window: time.Hour, Max: 700}).Limit(nil)
		bucket := (&runtime.Rule{Name: "bucket", Window: time.Hour, Max: 5, Algorithm: runtime.TokenBucket}).Limit(nil)
		for name, costs := range map[string][]int64{"bucket": {1000, 600, 6}, "log": {1000, 701, 5}} {
			d, err := limiter.Take(t.Context(), log, small, bucket)
			ok(t, err)
			m := limiter.Meter(t.Context(), d, 0, 0, 0)
			wantError(t, name, m.Charge(costs...), runtime.ErrLimited)
			m.Close()
			time.Sleep(time.Second)
			wantLeft(t, limiter, log, 10_000)
			wantLeft(t, limiter, small, 700)
			wantLeft(t, limiter, bucket, 5)
		}
		ctx, cancel := context.WithCancel(t.Context())
		d, err := limiter.Take(ctx, log)
		ok(t, err)
		m, before := limiter.Meter(ctx, d, 0), store.trips()
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
