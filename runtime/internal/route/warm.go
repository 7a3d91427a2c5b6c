package route

import (
	"context"
	"errors"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime/internal/script"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// Warm makes the connections to every server that its first batches need, and loads the
// scripts that decide some limits.
func (r *Router) Warm(ctx context.Context, limits []terms.Terms) error {
	warm := func(ctx context.Context, client *redis.Client) error { return r.warm(ctx, client, limits) }
	switch c := r.client.(type) {
	case *redis.ClusterClient:
		return script.Clean(c.ForEachMaster(ctx, warm))
	case *redis.Ring:
		return script.Clean(c.ForEachShard(ctx, warm))
	}
	return r.warm(ctx, r.client, limits)
}

func (r *Router) warm(ctx context.Context, client redis.UniversalClient, limits []terms.Terms) error {
	var (
		other  error
		pinged sync.WaitGroup
	)
	pinged.Go(func() { other = script.Clean(client.Ping(ctx).Err()) }) // by a connection of its own
	err := r.cfg.Library.Load(ctx, client, limits)
	pinged.Wait()
	return errors.Join(err, other)
}
