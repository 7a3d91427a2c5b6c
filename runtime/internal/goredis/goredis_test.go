package goredis_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/goredis"
	"github.com/rategen/rategen/runtime/internal/wiretest"
	"github.com/rategen/rategen/runtime/rediswire"
)

func TestClient(t *testing.T) {
	t.Parallel()
	wiretest.Run(t, func(_ testing.TB, o *redis.UniversalOptions) (rediswire.Client, func()) {
		client := redis.NewUniversalClient(runtime.TuneRedis(o))
		return goredis.New(client), func() { _ = client.Close() }
	})
}
