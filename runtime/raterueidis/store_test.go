package raterueidis

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/wiretest"
)

// open makes a store on what go-redis would reach with some options.
func open(tb testing.TB, o *redis.UniversalOptions, opts ...runtime.RedisOption) *runtime.RedisStore {
	tb.Helper()
	option := optionOf(o)
	client := dial(tb, option)
	tb.Cleanup(client.Close)
	store, err := NewStore(client, *option, opts...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = store.Close() })
	return store
}

func TestStore(t *testing.T) {
	t.Parallel()
	wiretest.RunStore(t, open)
}
