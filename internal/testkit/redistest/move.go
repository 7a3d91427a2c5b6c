package redistest

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// StartMove begins to move a slot to another master and leaves its keys where
// they are: until finish is called, the old owner answers ASK for every key
// that it does not have. finish moves the keys. Afterwards all nodes agree on the
// new owner, and a client that has not heard of it is answered MOVED. It needs no node
// to be down.
func (c *Cluster) StartMove(slot int, to *Server) (finish func()) {
	c.tb.Helper()
	from := c.Master(slot)
	if from == nil {
		c.tb.Fatalf("move slot %d: it has no master", slot)
	}
	if from == to {
		return func() {}
	}
	// On a busy machine a node that is silent would be replaced, or refuse, meanwhile.
	c.setNodeTimeout(idleNodeTimeout)
	c.setSlot(to, slot, "IMPORTING", c.id[from])
	c.setSlot(from, slot, "MIGRATING", c.id[to])
	return func() {
		c.tb.Helper()
		if err := c.moveKeys(slot, from, to); err != nil {
			c.tb.Fatalf("move slot %d: %v", slot, err)
		}
		// The new owner first: it refuses nothing in between.
		c.setSlot(to, slot, "NODE", c.id[to])
		c.setSlot(from, slot, "NODE", c.id[to])
		c.setNodeTimeout(c.nodeTimeout)
		c.WaitReady()
		waitFor(c.tb, clusterLimit, "the slot's new owner", func() error { return c.ownedBy(slot, to) })
	}
}

// setNodeTimeout sets how long a running node lets others be silent.
func (c *Cluster) setNodeTimeout(d time.Duration) {
	c.tb.Helper()
	for _, node := range c.Nodes {
		if !node.running() {
			continue
		}
		if err := node.configure("cluster-node-timeout", fmt.Sprint(d.Milliseconds())); err != nil {
			c.tb.Fatalf("set the timeout of nodes: %v", err)
		}
	}
}

func (c *Cluster) setSlot(node *Server, slot int, state, id string) {
	c.tb.Helper()
	err := node.ask(func(ctx context.Context, client *redis.Client) error {
		return client.Do(ctx, "CLUSTER", "SETSLOT", slot, state, id).Err()
	})
	if err != nil {
		c.tb.Fatalf("move slot %d: SETSLOT %s: %v", slot, state, err)
	}
}

// MoveKeys moves single keys of a slot that StartMove has begun to move.
func (c *Cluster) MoveKeys(from, to *Server, keys ...string) {
	c.tb.Helper()
	err := from.ask(func(ctx context.Context, client *redis.Client) error { return migrate(ctx, client, to, keys) })
	if err != nil {
		c.tb.Fatalf("move keys: %v", err)
	}
}

func (c *Cluster) moveKeys(slot int, from, to *Server) error {
	return from.ask(func(ctx context.Context, client *redis.Client) error {
		for {
			keys, err := client.ClusterGetKeysInSlot(ctx, slot, 100).Result()
			if err != nil || len(keys) == 0 {
				return err
			}
			if err := migrate(ctx, client, to, keys); err != nil {
				return err
			}
		}
	})
}

func migrate(ctx context.Context, client *redis.Client, to *Server, keys []string) error {
	const timeout = 30_000 // milliseconds
	args := []any{"MIGRATE", loopback, to.port(), "", 0, timeout, "KEYS"}
	for _, key := range keys {
		args = append(args, key)
	}
	return client.Do(ctx, args...).Err()
}

// ownedBy returns nil when every running node holds owner for the owner.
func (c *Cluster) ownedBy(slot int, owner *Server) error {
	views, err := c.views()
	for node, v := range views {
		if v.owner(slot) != c.id[owner] {
			return fmt.Errorf("%s does not know that %s owns slot %d", node.Addr, owner.Addr, slot)
		}
	}
	return err
}
