package runtime

import (
	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/runtime/rediswire"
)

func init() {
	bridge.LimiterOf = func(limiter any) bridge.Limiter { return lent{limiter.(*Limiter)} }
	bridge.StoreOf = func(store any) bridge.RedisStore { return lentStore{store.(*RedisStore)} }
	bridge.WithExceeded = withExceeded
	bridge.NewRedisStore = func(client rediswire.Client, opts any) any {
		return newRedisStore(client, opts.([]RedisOption)...)
	}
}

// lent implements [bridge.Limiter], which says what each method does.
type lent struct{ *Limiter }

// lentStore implements [bridge.RedisStore].
type lentStore struct{ *RedisStore }
