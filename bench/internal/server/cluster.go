package server

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// slots is how many a cluster has.
const slots = 16_384

// StartCluster starts a cluster of so many masters, which end with ctx or Stop.
func StartCluster(ctx context.Context, masters int) (nodes []*Server, err error) {
	defer func() {
		if err != nil {
			for _, node := range nodes {
				node.Stop()
			}
		}
	}()
	for i := range masters {
		addr, err := busPort()
		if err != nil {
			return nodes, err
		}
		_, port, err := net.SplitHostPort(addr)
		if err != nil {
			return nodes, err
		}
		node, err := start(ctx, port, "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf")
		if err != nil {
			return nodes, err
		}
		node.Addr = addr
		nodes = append(nodes, node)
		client := NewClient(node.Socket)
		err = client.ClusterAddSlotsRange(ctx, i*slots/masters, (i+1)*slots/masters-1).Err()
		if err == nil && i > 0 {
			host, first, _ := net.SplitHostPort(nodes[0].Addr)
			err = client.ClusterMeet(ctx, host, first).Err()
		}
		_ = client.Close()
		if err != nil {
			return nodes, err
		}
	}
	return nodes, ready(ctx, nodes)
}

// ready returns when all nodes know all others.
func ready(ctx context.Context, nodes []*Server) error {
	for _, node := range nodes {
		client := NewClient(node.Socket)
		err := fmt.Errorf("the cluster is not complete")
		for try := 0; err != nil; try++ {
			var info string
			switch info, err = client.ClusterInfo(ctx).Result(); {
			case err != nil:
			case !strings.Contains(info, "cluster_state:ok"), !strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d\r", len(nodes))):
				err = fmt.Errorf("the cluster is not complete:\n%s", info)
			}
			if err != nil && try == 600 {
				_ = client.Close()
				return err
			}
			if err != nil {
				time.Sleep(100 * time.Millisecond)
			}
		}
		_ = client.Close()
	}
	return nil
}

// busPort returns an address whose port is free, and the one that nodes of a cluster use
// among themselves, 10,000 above it.
func busPort() (string, error) {
	for range 100 {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		port := listener.Addr().(*net.TCPAddr).Port
		if bus, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port-10_000)); err == nil {
			_ = bus.Close()
			_ = listener.Close()
			return bus.Addr().String(), nil
		}
		_ = listener.Close()
	}
	return "", fmt.Errorf("no port is free whose bus port is free as well")
}
