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
		err := node.ask(func(ctx context.Context, client *redis.Client) error {
			values, err := client.ConfigGet(ctx, name).Result()
			before = values[name]
			return err
		})
		if err == nil {
			err = node.configure(name, value)
		}
		if err != nil {
			tb.Fatalf("set %s: %v", name, err)
		}
		tb.Cleanup(func() {
			if err := node.configure(name, before); err != nil {
				tb.Errorf("set %s back: %v", name, err)
			}
		})
	}
}

// configure sets a parameter of the server, until it is restarted.
func (s *Server) configure(name, value string) error {
	return s.ask(func(ctx context.Context, client *redis.Client) error {
		return client.ConfigSet(ctx, name, value).Err()
	})
}
