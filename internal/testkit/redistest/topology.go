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
	nodes []nodeLine
}

// nodeLine is one line of CLUSTER NODES.
type nodeLine struct {
	id     string
	flags  []string
	epoch  int
	ranges []string // "0-5460" or "7"
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
		nodes, err := client.ClusterNodes(ctx).Result()
		if err != nil {
			return err
		}
		readInfo(v.info, replication)
		readInfo(v.info, cluster)
		for line := range strings.Lines(nodes) {
			// id addr flags master ping pong epoch link slot...
			f := strings.Fields(line)
			if len(f) < 8 {
				return fmt.Errorf("CLUSTER NODES: %q", line)
			}
			epoch, err := strconv.Atoi(f[6])
			if err != nil {
				return fmt.Errorf("CLUSTER NODES: %q", line)
			}
			v.nodes = append(v.nodes, nodeLine{
				id:    f[0],
				flags: strings.Split(f[2], ","),
				epoch: epoch,
				ranges: slices.DeleteFunc(f[8:], func(s string) bool {
					return strings.HasPrefix(s, "[") // a slot on the move
				}),
			})
		}
		return nil
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
	for _, n := range v.nodes {
		if len(n.ranges) > 0 {
			owners = append(owners, n.id+" "+strings.Join(n.ranges, " "))
		}
	}
	slices.Sort(owners)
	return strings.Join(owners, "\n")
}

// replicas counts the replicas that are known and in good health.
func (v view) replicas() int {
	count := 0
	for _, n := range v.nodes {
		if slices.Contains(n.flags, "slave") && !n.failing() {
			count++
		}
	}
	return count
}

func (n nodeLine) failing() bool {
	return slices.ContainsFunc(n.flags, func(flag string) bool {
		return flag == "fail" || flag == "fail?" || flag == "handshake" || flag == "noaddr"
	})
}

func (n nodeLine) owns(slot int) bool {
	return slices.ContainsFunc(n.ranges, func(r string) bool {
		low, high, isRange := strings.Cut(r, "-")
		if !isRange {
			high = low
		}
		first, err := strconv.Atoi(low)
		last, err2 := strconv.Atoi(high)
		return err == nil && err2 == nil && first <= slot && slot <= last
	})
}

// Master returns the running node that serves the slot, nil when there is
// none: its master is down or paused and no replica has taken over yet.
func (c *Cluster) Master(slot int) *Server { return c.Owners()(slot) }

// Owners returns what Master does for every slot, at the price of one: as it is now.
func (c *Cluster) Owners() func(slot int) *Server {
	c.tb.Helper()
	claims := map[*Server]nodeLine{}
	for _, node := range c.Nodes {
		if !node.running() {
			continue
		}
		v, err := c.view(node)
		if err != nil {
			c.tb.Fatalf("owners of slots: %v", err)
		}
		for _, n := range v.nodes {
			// Each node is trusted about its own slots alone.
			if n.id == c.id[node] && slices.Contains(n.flags, "master") {
				claims[node] = n
			}
		}
	}
	return func(slot int) (master *Server) {
		// Two nodes claim a slot if one was replaced while it was paused. The newer
		// epoch is the successor's.
		newest := -1
		for node, n := range claims {
			if n.owns(slot) && n.epoch > newest {
				master, newest = node, n.epoch
			}
		}
		return master
	}
}

// Epoch returns how many elections the cluster has had, with what its nodes began with. A
// replica that takes over has won one.
func (c *Cluster) Epoch() (newest int64, err error) {
	for _, node := range c.Nodes {
		if !node.running() {
			continue
		}
		v, err := c.view(node)
		if err != nil {
			return 0, err
		}
		epoch, err := strconv.ParseInt(v.info["cluster_current_epoch"], 10, 64)
		if err != nil {
			return 0, err
		}
		newest = max(newest, epoch)
	}
	return newest, nil
}

// Masters waits until the cluster is ready and returns the addresses of its masters. They
// are the same as before unless a replica has taken the place of one.
func (c *Cluster) Masters() []string {
	c.tb.Helper()
	c.WaitReady()
	var masters []string
	for _, node := range c.Nodes {
		if !node.running() {
			continue
		}
		v, err := c.view(node)
		if err != nil {
			c.tb.Fatalf("masters: %v", err)
		}
		if v.info["role"] == "master" {
			masters = append(masters, node.Addr)
		}
	}
	return masters
}
