package migrating

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime"
)

// limiterOf returns a limiter with keys of its own.
func limiterOf(t *testing.T, client *redis.Client, namespace string) *runtime.Limiter {
	t.Helper()
	limiter := runtime.New(runtime.NewRedisStore(client), runtime.WithNamespace(namespace))
	t.Cleanup(func() {
		if err := limiter.Close(); err != nil {
			t.Error(err)
		}
	})
	return limiter
}
