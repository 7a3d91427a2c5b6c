package redistest

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	clusterMasters = 3
	clusterSlots   = 16384

	// clusterNodeTimeout is how long a node may be silent before the others
	// take it for dead; a replica has its place some two seconds later.
	clusterNodeTimeout = time.Second

	// idleNodeTimeout is that of a cluster of which no node is to fail: nobody is replaced.
	idleNodeTimeout = 30 * time.Second

	clusterLimit = 2 * time.Minute // guards against a hang
)

// Cluster is a Redis Cluster of three masters with one replica each.
type Cluster struct {
	// Nodes are the servers. At the start the first three are the masters,
	// each with a third of the slots in order, and Nodes[i+3] is the replica
	// of Nodes[i]; [Cluster.Master] knows who it is later.
	Nodes []*Server

	tb testing.TB
	id map[*Server]string

	nodeTimeout time.Duration
	fails       sync.Once // when the first node does
}

// StartCluster starts a cluster and returns when all nodes agree that it is
// up and every replica has its master's data. The test's cleanup stops it.
func StartCluster(tb testing.TB) *Cluster {
	tb.Helper()
	c := &Cluster{tb: tb, id: map[*Server]string{}}
	for range 2 * clusterMasters {
		c.Nodes = append(c.Nodes, start(tb, portCluster, func(string, int) []string {
			return []string{
				"--cluster-enabled", "yes",
				"--cluster-config-file", "nodes.conf",
				"--cluster-node-timeout", fmt.Sprint(clusterNodeTimeout.Milliseconds()),
				// A replica stands for election however long ago it heard of
				// its master: a loaded machine must not fail a test.
				"--cluster-replica-validity-factor", "0",
				// No replica moves to a master that has lost its own.
				"--cluster-migration-barrier", "10",
				"--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0",
			}
		}))
	}
	c.meet()
	for i, replica := range c.Nodes[clusterMasters:] {
		// A node refuses until it has heard of its master.
		waitFor(tb, clusterLimit, "attach a replica", func() error {
			return replica.ask(func(ctx context.Context, client *redis.Client) error {
				return client.ClusterReplicate(ctx, c.id[c.Nodes[i]]).Err()
			})
		})
	}
	c.WaitReady()
	// A busy machine lets a node be silent for a second, and who takes over from it has not all
	// of its writes. So nobody does before a test has a node fail.
	c.nodeTimeout = idleNodeTimeout
	c.setNodeTimeout(c.nodeTimeout)
	for _, node := range c.Nodes {
		node.fails = c.expectFailure
	}
	return c
}

// KeepMasters has no replica take over, whatever fails, and the others serve their slots. Else all
// nodes refuse, from when they know that a master has failed until a replica has its place.
func (c *Cluster) KeepMasters() { c.fails.Do(func() {}) }

// expectFailure has the nodes notice soon that one of them fails.
func (c *Cluster) expectFailure() {
	c.fails.Do(func() {
		c.nodeTimeout = clusterNodeTimeout
		for _, node := range c.Nodes {
			_ = node.configure("cluster-node-timeout", fmt.Sprint(c.nodeTimeout.Milliseconds())) // some may be busy
		}
	})
}

// meet gives the masters their slots and introduces the nodes to each other.
func (c *Cluster) meet() {
	c.tb.Helper()
	for i, node := range c.Nodes {
		err := node.ask(func(ctx context.Context, client *redis.Client) error {
			id, err := client.Do(ctx, "CLUSTER", "MYID").Text()
			if err != nil {
				return err
			}
			c.id[node] = id
			// Distinct epochs from the start, or the nodes first have to
			// settle who is older.
			if err := client.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(); err != nil {
				return err
			}
			if i < clusterMasters {
				// ADDSLOTS, since ADDSLOTSRANGE came with Redis 7.0.
				var slots []int
				for slot := firstSlot(i); slot < firstSlot(i+1); slot++ {
					slots = append(slots, slot)
				}
				if err := client.ClusterAddSlots(ctx, slots...).Err(); err != nil {
					return err
				}
			}
			// Gossip would spread one introduction, in a second or two.
			for _, other := range c.Nodes[:i] {
				if err := client.ClusterMeet(ctx, loopback, other.port()).Err(); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			c.tb.Fatalf("create a cluster: %v", err)
		}
	}
}

// firstSlot returns the first slot of the i-th master.
func firstSlot(i int) int { return i * clusterSlots / clusterMasters }

// Addrs returns the addresses of all nodes.
func (c *Cluster) Addrs() []string { return addrs(c.Nodes) }

func addrs(servers []*Server) (all []string) {
	for _, s := range servers {
		all = append(all, s.Addr)
	}
	return all
}

// Client returns a client of the cluster with go-redis's default options as
// the functions change them. The test's cleanup closes it.
func (c *Cluster) Client(tb testing.TB, options ...func(*redis.ClusterOptions)) *redis.ClusterClient {
	tb.Helper()
	opt := &redis.ClusterOptions{Addrs: c.Addrs()}
	for _, set := range options {
		set(opt)
	}
	client := redis.NewClusterClient(opt)
	tb.Cleanup(func() { _ = client.Close() })
	return client
}

// WaitReady returns when every slot is served by a running master, all running
// nodes agree on which, their cluster_state is ok and the running replicas are
// linked to their masters. Call it after a Kill to wait for the failover and
// after a Restart to have that node back. It fails the test after two minutes.
func (c *Cluster) WaitReady() {
	c.tb.Helper()
	waitFor(c.tb, clusterLimit, "the cluster's state", c.ready)
}

func (c *Cluster) ready() error {
	views, err := c.views()
	if err != nil {
		return err
	}
	running := map[string]bool{} // by id
	for node := range views {
		running[c.id[node]] = true
	}
	if len(running) < clusterMasters {
		return fmt.Errorf("only %d nodes run", len(running))
	}
	var first string // the slots' owners as one node sees them
	for node, v := range views {
		if state := v.info["cluster_state"]; state != "ok" {
			return fmt.Errorf("%s: cluster_state:%s", node.Addr, state)
		}
		if v.info["role"] == "slave" && v.info["master_link_status"] != "up" {
			return fmt.Errorf("%s: master_link_status:%s", node.Addr, v.info["master_link_status"])
		}
		if want, got := len(running)-clusterMasters, v.replicas(); got != want {
			return fmt.Errorf("%s: sees %d replicas, want %d", node.Addr, got, want)
		}
		for _, s := range v.slots {
			if !running[s.Nodes[0].ID] {
				return fmt.Errorf("%s: has not replaced %s, which is down", node.Addr, s.Nodes[0].ID)
			}
		}
		if first = cmp.Or(first, v.owners()); v.owners() != first {
			return fmt.Errorf("%s: knows other owners:\n%s\nthan another node:\n%s", node.Addr, v.owners(), first)
		}
	}
	return nil
}

// Slot returns the hash slot of a key: CRC-16/XMODEM of its hash tag, or of all of it.
func (c *Cluster) Slot(key string) int {
	if _, rest, found := strings.Cut(key, "{"); found {
		if tag, _, closed := strings.Cut(rest, "}"); closed && tag != "" {
			key = tag
		}
	}
	crc := uint16(0)
	for _, b := range []byte(key) {
		crc ^= uint16(b) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc) % clusterSlots
}
