package runtime

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// masters calls do for every server that holds keys, for several at the same
// time, and returns the first error.
func (s *RedisStore) masters(ctx context.Context, do func(context.Context, redis.Cmdable) error) error {
	one := func(ctx context.Context, c *redis.Client) error { return do(ctx, c) }
	switch c := s.client.(type) {
	case *redis.ClusterClient:
		return c.ForEachMaster(ctx, one)
	case *redis.Ring:
		return c.ForEachShard(ctx, one)
	}
	return do(ctx, s.client)
}
