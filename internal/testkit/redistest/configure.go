package redistest

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Configure sets a parameter on every node until the test ends.
func (c *Cluster) Configure(tb testing.TB, name, value string) {
	tb.Helper()
	for _, node := range c.Nodes {
		var before string
		set := func(value string) error {
			return node.ask(func(ctx context.Context, client *redis.Client) error {
				return client.ConfigSet(ctx, name, value).Err()
			})
		}
		err := node.ask(func(ctx context.Context, client *redis.Client) error {
			values, err := client.ConfigGet(ctx, name).Result()
			before = values[name]
			return err
		})
		if err == nil {
			err = set(value)
		}
		if err != nil {
			tb.Fatalf("set %s: %v", name, err)
		}
		tb.Cleanup(func() {
			if err := set(before); err != nil {
				tb.Errorf("set %s back: %v", name, err)
			}
		})
	}
}
