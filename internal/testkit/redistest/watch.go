package redistest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// WaitMaster returns the master as soon as the running sentinels agree on one
// that runs and takes writes: after a Kill or Pause of the master, when a
// replica has taken its place. It fails the test after two minutes.
func (s *Sentinel) WaitMaster() *Server {
	s.tb.Helper()
	var master *Server
	waitFor(s.tb, sentinelLimit, "a master", func() (err error) {
		master, err = s.master()
		return err
	})
	return master
}

// WaitReady returns when there is a master as WaitMaster has it, every other
// running server is its linked replica and the sentinels could replace the
// master once more. That is some four seconds after a failover; a master that
// was replaced and restarted holds itself for a master for ten seconds, until
// the sentinels demote it. WaitReady fails the test after two minutes.
func (s *Sentinel) WaitReady() {
	s.tb.Helper()
	waitFor(s.tb, sentinelLimit, "the sentinels' state", s.ready)
}

// master returns the master if the sentinels agree on it and it agrees too.
func (s *Sentinel) master() (*Server, error) {
	var master *Server
	for _, sentinel := range s.running() {
		named, err := s.namedBy(sentinel)
		if err != nil {
			return nil, err
		}
		if master != nil && named != master {
			return nil, fmt.Errorf("%s names %s, another sentinel %s", sentinel.Addr, named.Addr, master.Addr)
		}
		master = named
	}
	if master == nil {
		return nil, errors.New("no sentinel runs")
	}
	return master, master.ask(func(ctx context.Context, client *redis.Client) error {
		role, err := client.Do(ctx, "ROLE").Slice()
		if err != nil {
			return err
		}
		if len(role) == 0 || role[0] != "master" {
			return fmt.Errorf("its role is %v", role)
		}
		return nil
	})
}

// Epoch returns how many elections there were of a sentinel that replaces the master.
func (s *Sentinel) Epoch() (newest int64, err error) {
	for _, sentinel := range s.running() {
		err = errors.Join(err, sentinel.ask(func(ctx context.Context, client *redis.Client) error {
			state := redis.NewMapStringStringCmd(ctx, "SENTINEL", "MASTER", s.MasterName)
			if err := client.Process(ctx, state); err != nil {
				return err
			}
			epoch, err := strconv.ParseInt(state.Val()["config-epoch"], 10, 64)
			newest = max(newest, epoch)
			return err
		}))
	}
	return newest, err
}

func (s *Sentinel) namedBy(sentinel *Server) (master *Server, err error) {
	err = sentinel.ask(func(ctx context.Context, client *redis.Client) error {
		addr, err := client.Do(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", s.MasterName).StringSlice()
		if err != nil {
			return err
		}
		for _, node := range s.Nodes {
			if len(addr) == 2 && node.Addr == net.JoinHostPort(addr[0], addr[1]) {
				master = node
				return nil
			}
		}
		return fmt.Errorf("unknown master %q", addr)
	})
	return master, err
}

func (s *Sentinel) running() []*Server {
	return slices.DeleteFunc(slices.Clone(s.Sentinels), func(sentinel *Server) bool { return !sentinel.running() })
}

func (s *Sentinel) ready() error {
	master, err := s.master()
	if err != nil {
		return err
	}
	sentinels := s.running()
	if len(sentinels) < sentinelQuorum {
		return errors.New("fewer sentinels run than make a quorum")
	}
	for _, sentinel := range sentinels {
		if err := s.watches(sentinel, master, len(sentinels)-1); err != nil {
			return err
		}
	}
	for _, node := range s.Nodes {
		if node == master || !node.running() {
			continue
		}
		if err := linked(node); err != nil {
			return err
		}
	}
	return nil
}

// watches returns nil when the sentinel holds the master for healthy, knows
// every other running server as its healthy replica and is in touch with the
// given number of other sentinels.
func (s *Sentinel) watches(sentinel, master *Server, others int) error {
	return sentinel.ask(func(ctx context.Context, client *redis.Client) error {
		state := redis.NewMapStringStringCmd(ctx, "SENTINEL", "MASTER", s.MasterName)
		if err := client.Process(ctx, state); err != nil {
			return err
		}
		if flags := state.Val()["flags"]; flags != "master" {
			return fmt.Errorf("%s: the master %s is %s", sentinel.Addr, master.Addr, flags)
		}
		known, err := s.known(ctx, client, "REPLICAS", "slave")
		if err != nil {
			return err
		}
		for _, node := range s.Nodes {
			if node != master && node.running() && !slices.Contains(known, node.port()) {
				return fmt.Errorf("%s: does not know the replica %s", sentinel.Addr, node.Addr)
			}
		}
		known, err = s.known(ctx, client, "SENTINELS", "sentinel")
		if err != nil {
			return err
		}
		if len(known) != others {
			return fmt.Errorf("%s: knows %d other sentinels, want %d", sentinel.Addr, len(known), others)
		}
		return nil
	})
}

// known returns the ports of the servers that a sentinel lists, has reached
// and sees nothing wrong with: whose flags are the one given and no other.
func (s *Sentinel) known(ctx context.Context, client *redis.Client, list, flag string) ([]string, error) {
	cmd := redis.NewMapStringStringSliceCmd(ctx, "SENTINEL", list, s.MasterName)
	if err := client.Process(ctx, cmd); err != nil {
		return nil, err
	}
	var ports []string
	for _, server := range cmd.Val() {
		// It may have thought the master down when it was last asked, which
		// Valkey 9.1 goes on saying after a failover.
		flags := strings.TrimSuffix(server["flags"], ",master_down")
		// Without a runid it was only heard of, and could not be promoted.
		if flags == flag && server["runid"] != "" {
			ports = append(ports, server["port"])
		}
	}
	return ports, nil
}
