package runtime

import (
	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rediswire"
)

func init() {
	bridge.LimiterOf = func(limiter any) bridge.Limiter { return lent{limiter.(*Limiter)} }
	bridge.StoreOf = func(store any) bridge.RedisStore { return lentStore{store.(*RedisStore)} }
	bridge.EngineOf = func(store any) any { return store.(Store).backend().Store }
	bridge.NewStore = func(engine, behind any, shared bool) any {
		s := replaced{Store: engine.(terms.Store), leases: shared}
		if b, ok := behind.(Store); ok {
			s.memory, s.redis = b.backend().memory, b.backend().redis
		}
		return s
	}
	bridge.AccountsOf = func(store any) any { return &store.(*RedisStore).accounts }
	bridge.WithExceeded = withExceeded
	bridge.RecordBackend = recordBackend
	bridge.NewRedisStore = func(client rediswire.Client, opts any) any {
		return newRedisStore(client, opts.([]RedisOption)...)
	}
}

// lent implements [bridge.Limiter], which says what each method does.
type lent struct{ *Limiter }

// A replaced store is a [Store] whose calls something else decides.
type replaced backend

func (r replaced) backend() backend { return backend(r) }

// lentStore implements [bridge.RedisStore].
type lentStore struct{ *RedisStore }
