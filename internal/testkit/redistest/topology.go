package redistest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// view is the cluster as one node sees it.
type view struct {
	info  map[string]string // INFO replication and CLUSTER INFO
	slots []redis.ClusterSlot
}

func (c *Cluster) view(node *Server) (view, error) {
	v := view{info: map[string]string{}}
	err := node.ask(func(ctx context.Context, client *redis.Client) error {
		replication, err := client.Info(ctx, "replication").Result()
		if err != nil {
			return err
		}
		cluster, err := client.ClusterInfo(ctx).Result()
		if err != nil {
			return err
		}
		readInfo(v.info, replication)
		readInfo(v.info, cluster)
		//lint:ignore SA1019 go-redis reads slots so
		v.slots, err = client.ClusterSlots(ctx).Result()
		return err
	})
	return v, err
}

// readInfo reads what INFO and CLUSTER INFO answer.
func readInfo(into map[string]string, text string) {
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			into[name] = value
		}
	}
}

// owners returns who owns which slots, in a form to compare.
func (v view) owners() string {
	var owners []string
	for _, s := range v.slots {
		owners = append(owners, fmt.Sprintf("%05d-%d %s", s.Start, s.End, s.Nodes[0].ID))
	}
	slices.Sort(owners)
	return strings.Join(owners, "\n")
}

// owner returns the id of the slot's master, or nothing.
func (v view) owner(slot int) string {
	for _, s := range v.slots {
		if s.Start <= slot && slot <= s.End {
			return s.Nodes[0].ID
		}
	}
	return ""
}

// replicas counts the replicas that are known and have not failed.
func (v view) replicas() int {
	known := map[string]bool{}
	for _, s := range v.slots {
		for _, replica := range s.Nodes[1:] {
			known[replica.ID] = true
		}
	}
	return len(known)
}

// views returns the cluster as each running node sees it.
func (c *Cluster) views() (map[*Server]view, error) {
	all := map[*Server]view{}
	for _, node := range c.Nodes {
		if !node.running() {
			continue
		}
		v, err := c.view(node)
		if err != nil {
			return nil, err
		}
		all[node] = v
	}
	return all, nil
}

// Master returns the running node that serves the slot, nil when there is
// none: its master is down or paused and no replica has taken over yet.
func (c *Cluster) Master(slot int) *Server { return c.Owners()(slot) }

// Owners returns what Master does for every slot, at the price of one: as it is now.
func (c *Cluster) Owners() func(slot int) *Server {
	c.tb.Helper()
	views, err := c.views()
	if err != nil {
		c.tb.Fatalf("owners of slots: %v", err)
	}
	return func(slot int) (master *Server) {
		// Each node is trusted about its own slots alone. Two claim a slot if one was replaced while it was
		// paused. The newer epoch is the successor's.
		newest := int64(-1)
		for node, v := range views {
			if epoch, _ := strconv.ParseInt(v.info["cluster_my_epoch"], 10, 64); v.owner(slot) == c.id[node] && epoch > newest {
				master, newest = node, epoch
			}
		}
		return master
	}
}

// Epoch returns how many elections the cluster has had, with what its nodes began with. A
// replica that takes over has won one.
func (c *Cluster) Epoch() (newest int64, err error) {
	views, err := c.views()
	for _, v := range views {
		epoch, err := strconv.ParseInt(v.info["cluster_current_epoch"], 10, 64)
		if err != nil {
			return 0, err
		}
		newest = max(newest, epoch)
	}
	return newest, err
}

// Masters waits until the cluster is ready and returns the addresses of its masters. They
// are the same as before unless a replica has taken the place of one.
func (c *Cluster) Masters() (masters []string) {
	c.tb.Helper()
	c.WaitReady()
	views, err := c.views()
	if err != nil {
		c.tb.Fatalf("masters: %v", err)
	}
	for node, v := range views {
		if v.info["role"] == "master" {
			masters = append(masters, node.Addr)
		}
	}
	return masters
}
