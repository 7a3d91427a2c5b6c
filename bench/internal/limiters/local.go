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

// Locals returns limiters that count in this process. For the last, s is the
// Redis that has refused.
func Locals(s Server) []Local {
	var all []Local
	for _, w := range ways {
		if w.rule.Storage != runtime.StorageZSET {
			continue // a memory store has one way to keep a log
		}
		name := "rategen " + w.name
		if w.rule.Algorithm == runtime.SlidingLog {
			name = LocalLog
		}
		all = append(all, Local{Name: name, Own: true, New: func(l Limits, keys int) (load.Take, func(), error) {
			return w.ask(quiet(newMemoryStore(keys)), l), noStop, nil
		}})
	}
	return append(all,
		Local{Name: LocalGenerated, Own: true, New: newGenerated},
		Local{Name: LocalRecorded, Own: true, New: newRecorded},
		Local{Name: LocalRecalled, Own: true, MaxKeys: 10_000, OnlyRefuses: true,
			New: func(l Limits, _ int) (load.Take, func(), error) {
				store := runtime.NewRedisStore(s.Client, runtime.WithTimeout(s.Timeout))
				return ask(quiet(store), way{name: "recalled"}.ruleFor(l)), noStop, nil
			}},
		Local{Name: LocalBase, New: newSethvargoMemory},
		Local{Name: "throttled memstore", New: func(l Limits, _ int) (load.Take, func(), error) {
			store, err := memstore.NewCtx(0)
			if err != nil {
				return nil, nil, err
			}
			take, err := throttle(store, l.Level)
			return take, noStop, err
		}},
		Local{Name: "ulule/limiter memory", New: func(l Limits, _ int) (load.Take, func(), error) {
			return count(memory.NewStoreWithOptions(ulule.StoreOptions{Prefix: "ulule", CleanUpInterval: time.Minute}), l.Level), noStop, nil
		}},
		Local{Name: "x/time/rate in a sync.Map", New: newRateMap},
		Local{Name: "x/time/rate, one for all keys", New: func(l Limits, _ int) (load.Take, func(), error) {
			if l != NoRoom {
				l = HotRoom
			}
			limiter := newRate(l.Level)
			return func(context.Context, string) load.Answer { return answerOf(limiter.Allow(), nil) }, noStop, nil
		}},
	)
}

// newMemoryStore returns a store that holds so many keys without pushing any
// out, however unevenly they fall into its shards.
func newMemoryStore(keys int) *runtime.MemoryStore {
	return runtime.NewMemoryStore(runtime.WithMaxKeys(2*keys + 10_000))
}

// newGenerated returns a service behind the wrapper that rategen wrote for it,
// with the limits LocalRoom or NoRoom.
func newGenerated(l Limits, keys int) (load.Take, func(), error) {
	service := guarded.NewRateLimitedService(guarded.Plain{}, quiet(newMemoryStore(keys)))
	if l == NoRoom {
		return func(ctx context.Context, key string) load.Answer {
			return answerOf(service.NoRoom(ctx, key) == nil, nil)
		}, noStop, nil
	}
	return func(ctx context.Context, key string) load.Answer {
		return answerOf(service.Room(ctx, key) == nil, nil)
	}, noStop, nil
}

// newRecorded returns a limiter whose calls are recorded, and what is written thrown away.
func newRecorded(l Limits, keys int) (load.Take, func(), error) {
	recorder, err := raterecord.To(io.Discard)
	if err != nil {
		return nil, nil, err
	}
	limiter := runtime.New(newMemoryStore(keys), runtime.WithLogger(slog.New(slog.DiscardHandler)), runtime.WithObserver(recorder.Observer()))
	stop := func() { _, _ = limiter.Close(), recorder.Close() }
	return ask(limiter, way{rule: runtime.Rule{Algorithm: runtime.TokenBucket}}.ruleFor(l)), stop, nil
}

func newSethvargoMemory(limits Limits, keys int) (load.Take, func(), error) {
	l := limits.Level
	store, err := memorystore.New(&memorystore.Config{Tokens: uint64(l.Max), Interval: l.Window, InitialAlloc: keys})
	if err != nil {
		return nil, nil, err
	}
	return takeFrom(store), func() { _ = store.Close(context.Background()) }, nil
}

func newRate(l Limit) *rate.Limiter {
	return rate.NewLimiter(rate.Limit(float64(l.Max)/l.Window.Seconds()), int(l.Max))
}

// newRateMap keeps a limiter for each key, as people do who have none for
// many: nothing ever leaves the map.
func newRateMap(l Limits, _ int) (load.Take, func(), error) {
	var limiters sync.Map
	return func(_ context.Context, key string) load.Answer {
		limiter, ok := limiters.Load(key)
		if !ok {
			limiter, _ = limiters.LoadOrStore(key, newRate(l.Level))
		}
		return answerOf(limiter.(*rate.Limiter).Allow(), nil)
	}, noStop, nil
}
