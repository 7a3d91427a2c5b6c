// Package server looks after the Redis servers of a store beside its calls: it reads how
// much memory they use, walks over their keys, and finds out whether a proxy shards them.
//
// It is handed the client that the store was given, and functions that hear what was
// found. It promises that each look ends when its context does or about a second later,
// and that Close returns when nothing of it runs any more. It never decides a call, and
// of the keys that are not its own it changes none but the expiry of those that it is
// asked to heal.
package server

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// masters calls do for every server that holds keys, for several at the same
// time, and returns the first error.
func masters(ctx context.Context, client redis.UniversalClient, do func(context.Context, redis.Cmdable) error) error {
	one := func(ctx context.Context, c *redis.Client) error { return do(ctx, c) }
	switch c := client.(type) {
	case *redis.ClusterClient:
		return c.ForEachMaster(ctx, one)
	case *redis.Ring:
		return c.ForEachShard(ctx, one)
	}
	return do(ctx, client)
}

// Options returns what the client is set to: whether its commands end with their
// contexts, and how long it reads, 0 and less for ever. It reports false for a client
// whose options it does not know.
func Options(client redis.UniversalClient) (contexts bool, read time.Duration, known bool) {
	switch client := client.(type) {
	case *redis.Client:
		return client.Options().ContextTimeoutEnabled, client.Options().ReadTimeout, true
	case *redis.ClusterClient:
		return client.Options().ContextTimeoutEnabled, client.Options().ReadTimeout, true
	case *redis.Ring:
		return client.Options().ContextTimeoutEnabled, client.Options().ReadTimeout, true
	}
	return false, 0, false
}
