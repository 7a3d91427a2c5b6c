package migrating

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime"
)

// patient returns a store that waits for longer than a busy machine takes: what Redis does not
// decide is admitted.
func patient(client *redis.Client) runtime.Store {
	return runtime.NewRedisStore(client, runtime.WithTimeout(time.Minute))
}

// limiterOf returns a limiter with keys of its own.
func limiterOf(t *testing.T, client *redis.Client, namespace string) *runtime.Limiter {
	t.Helper()
	limiter := runtime.New(patient(client), runtime.WithNamespace(namespace))
	t.Cleanup(func() {
		if err := limiter.Close(); err != nil {
			t.Error(err)
		}
	})
	return limiter
}
