package limiters

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2/store/memstore"
	ulule "github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/store/memory"
	"golang.org/x/time/rate"

	"github.com/rategen/rategen/bench/internal/limiters/guarded"
	"github.com/rategen/rategen/bench/internal/load"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/raterecord"
)

// The names of limiters in memory.
const (
	LocalBase      = "sethvargo/go-limiter"
	LocalLog       = "rategen sliding-log"
	LocalGenerated = "rategen token-bucket, generated wrapper"
	LocalRecorded  = "rategen token-bucket, recorded"
	LocalRecalled  = "rategen refusal known of Redis"
)

// Locals returns limiters that count in this process. One of them knows what Redis has refused.
func Locals() []Limiter {
	var all []Limiter
	for _, w := range ways {
		if w.rule.Storage != runtime.StorageZSET {
			continue // a memory store has one way to keep a log
		}
		name := "rategen " + w.name
		if w.rule.Algorithm == runtime.SlidingLog {
			name = LocalLog
		}
		all = append(all, Limiter{Name: name, Own: true, New: func(s Server, l Limits) (load.Take, error) {
			return w.ask(quiet(newMemoryStore(s)), l), nil
		}})
	}
	return append(all,
		Limiter{Name: LocalGenerated, Own: true, New: newGenerated},
		Limiter{Name: LocalRecorded, Own: true, New: newRecorded},
		Limiter{Name: LocalRecalled, Own: true, MaxKeys: 10_000, OnlyRefuses: true, New: func(s Server, l Limits) (load.Take, error) {
			return ask(s.limiter(), way{name: "recalled"}.ruleFor(l)), nil
		}},
		Limiter{Name: LocalBase, New: newSethvargoMemory},
		Limiter{Name: "throttled memstore", New: func(_ Server, l Limits) (load.Take, error) {
			store, err := memstore.NewCtx(0)
			if err != nil {
				return nil, err
			}
			return throttle(store, l.Level)
		}},
		Limiter{Name: "ulule/limiter memory", New: func(_ Server, l Limits) (load.Take, error) {
			return count(memory.NewStoreWithOptions(ulule.StoreOptions{Prefix: "ulule", CleanUpInterval: time.Minute}), l.Level), nil
		}},
		Limiter{Name: "x/time/rate in a sync.Map", New: newRateMap},
		Limiter{Name: "x/time/rate, one for all keys", New: func(_ Server, l Limits) (load.Take, error) {
			if l != NoRoom {
				l = HotRoom
			}
			limiter := newRate(l.Level)
			return func(context.Context, string) load.Answer { return answerOf(limiter.Allow(), nil) }, nil
		}},
	)
}

// newMemoryStore returns a store that holds all keys without pushing any
// out, however unevenly they fall into its shards.
func newMemoryStore(s Server) *runtime.MemoryStore {
	return runtime.NewMemoryStore(runtime.WithMaxKeys(2*s.Keys + 10_000))
}

// newGenerated returns a service behind the wrapper that rategen wrote for it,
// with the limits LocalRoom or NoRoom.
func newGenerated(s Server, l Limits) (load.Take, error) {
	service := guarded.NewRateLimitedService(guarded.Plain{}, quiet(newMemoryStore(s)))
	call := service.Room
	if l == NoRoom {
		call = service.NoRoom
	}
	return func(ctx context.Context, key string) load.Answer { return answerOf(call(ctx, key) == nil, nil) }, nil
}

// newRecorded returns a limiter whose calls are recorded, and what is written thrown away.
func newRecorded(s Server, l Limits) (load.Take, error) {
	recorder, err := raterecord.To(io.Discard)
	if err != nil {
		return nil, err
	}
	limiter := runtime.New(newMemoryStore(s), runtime.WithLogger(slog.New(slog.DiscardHandler)), runtime.WithObserver(recorder.Observer()))
	s.Cleanup(func() { _, _ = limiter.Close(), recorder.Close() })
	return ask(limiter, way{rule: runtime.Rule{Algorithm: runtime.TokenBucket}}.ruleFor(l)), nil
}

func newSethvargoMemory(s Server, limits Limits) (load.Take, error) {
	l := limits.Level
	store, err := memorystore.New(&memorystore.Config{Tokens: uint64(l.Max), Interval: l.Window, InitialAlloc: s.Keys})
	if err != nil {
		return nil, err
	}
	s.Cleanup(func() { _ = store.Close(context.Background()) })
	return takeFrom(store), nil
}

func newRate(l Limit) *rate.Limiter {
	return rate.NewLimiter(rate.Limit(float64(l.Max)/l.Window.Seconds()), int(l.Max))
}

// newRateMap keeps a limiter for each key, as people do who have none for
// many: nothing ever leaves the map.
func newRateMap(_ Server, l Limits) (load.Take, error) {
	var limiters sync.Map
	return func(_ context.Context, key string) load.Answer {
		limiter, ok := limiters.Load(key)
		if !ok {
			limiter, _ = limiters.LoadOrStore(key, newRate(l.Level))
		}
		return answerOf(limiter.(*rate.Limiter).Allow(), nil)
	}, nil
}
