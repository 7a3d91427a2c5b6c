package redistest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	sentinelMaster = "mymaster"
	sentinelQuorum = 2

	// sentinelDownAfter is how long a server may be silent before a sentinel
	// takes it for dead. It has to be longer than the second a sentinel may
	// let pass before it connects to a new master: with less it takes that
	// one for dead as well, and the sentinels depose one master after the
	// other for ten seconds and more.
	sentinelDownAfter = 1500 * time.Millisecond

	// sentinelIdle is that of servers of which none is to fail: a busy machine lets one be
	// silent for seconds, and who takes over has not all of its writes.
	sentinelIdle = time.Minute

	sentinelLimit = 2 * time.Minute // guards against a hang
)

// Sentinel is a master with two replicas, watched by three sentinels that
// make a replica the master three to four seconds after they lost it.
type Sentinel struct {
	MasterName string    // what the sentinels call the master
	Nodes      []*Server // the data servers; at the start Nodes[0] is the master
	Sentinels  []*Server

	tb    testing.TB
	fails sync.Once // when the first data server does
}

// StartSentinel starts the servers and their sentinels and returns when the
// sentinels could fail over: they know each other and both replicas, which
// have their master's data. The test's cleanup stops all.
func StartSentinel(tb testing.TB) *Sentinel {
	tb.Helper()
	s := &Sentinel{MasterName: sentinelMaster, tb: tb}
	for range 3 {
		s.Nodes = append(s.Nodes, start(tb, portPlain, func(string, int) []string {
			args := []string{"--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0"}
			if len(s.Nodes) > 0 {
				args = append(args, "--replicaof", loopback, s.Nodes[0].port())
			}
			return args
		}))
	}
	// A sentinel asks the master for its replicas at once and then only every
	// ten seconds, so they have to be there first.
	for _, replica := range s.Nodes[1:] {
		waitFor(tb, sentinelLimit, "attach a replica", func() error { return linked(replica) })
	}
	for range 3 {
		s.Sentinels = append(s.Sentinels, start(tb, portSentinel, s.sentinelArgs))
	}
	waitFor(tb, sentinelLimit, "the sentinels' state", s.ready)
	s.setDownAfter(sentinelIdle)
	for _, node := range s.Nodes {
		node.fails = func() { s.fails.Do(func() { s.setDownAfter(sentinelDownAfter) }) }
	}
	return s
}

// setDownAfter sets how long the running sentinels let a server be silent.
func (s *Sentinel) setDownAfter(d time.Duration) {
	s.tb.Helper()
	for _, sentinel := range s.running() {
		if err := sentinel.ask(func(ctx context.Context, client *redis.Client) error {
			return client.Do(ctx, "SENTINEL", "SET", s.MasterName, "down-after-milliseconds", d.Milliseconds()).Err()
		}); err != nil {
			s.tb.Errorf("set what sentinels take for dead: %v", err) // not Fatal, which only the test's own goroutine may call
		}
	}
}

// sentinelArgs writes the configuration of one sentinel, which it rewrites as
// it learns, and returns the arguments that make it one.
func (s *Sentinel) sentinelArgs(dir string, _ int) []string {
	s.tb.Helper()
	conf := filepath.Join(dir, "sentinel.conf")
	text := fmt.Sprintf(`sentinel monitor %[1]s %[2]s %[3]s %[4]d
sentinel down-after-milliseconds %[1]s %[5]d
sentinel failover-timeout %[1]s 3000
`, sentinelMaster, loopback, s.Nodes[0].port(), sentinelQuorum, sentinelDownAfter.Milliseconds())
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		s.tb.Fatalf("start a sentinel: %v", err)
	}
	return []string{conf, "--sentinel"}
}

// linked returns nil when the server is a replica with its master's data.
func linked(replica *Server) error {
	return replica.ask(func(ctx context.Context, client *redis.Client) error {
		text, err := client.Info(ctx, "replication").Result()
		if err != nil {
			return err
		}
		info := map[string]string{}
		readInfo(info, text)
		if info["role"] != "slave" || info["master_link_status"] != "up" {
			return fmt.Errorf("role:%s master_link_status:%s", info["role"], info["master_link_status"])
		}
		return nil
	})
}

// Addrs returns the addresses of the sentinels.
func (s *Sentinel) Addrs() []string { return addrs(s.Sentinels) }

// Client returns a client that asks the sentinels for the master, with
// go-redis's default options as the functions change them. The test's cleanup
// closes it.
func (s *Sentinel) Client(tb testing.TB, options ...func(*redis.FailoverOptions)) *redis.Client {
	tb.Helper()
	opt := &redis.FailoverOptions{MasterName: s.MasterName, SentinelAddrs: s.Addrs()}
	for _, set := range options {
		set(opt)
	}
	client := redis.NewFailoverClient(opt)
	tb.Cleanup(func() { _ = client.Close() })
	return client
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

func (s *Sentinel) running() []*Server {
	return slices.DeleteFunc(slices.Clone(s.Sentinels), func(sentinel *Server) bool { return !sentinel.running() })
}

// ready returns nil when the sentinels could replace the master: each sees nothing wrong with it, with its
// replicas and with the other sentinels.
func (s *Sentinel) ready() error {
	for _, sentinel := range s.Sentinels {
		err := sentinel.ask(func(ctx context.Context, client *redis.Client) error {
			state := redis.NewMapStringStringCmd(ctx, "SENTINEL", "MASTER", s.MasterName)
			if err := client.Process(ctx, state); err != nil || state.Val()["flags"] != "master" {
				return errors.Join(err, fmt.Errorf("the master is %s", state.Val()["flags"]))
			}
			return errors.Join(s.knows(ctx, client, "REPLICAS", "slave", len(s.Nodes)-1), s.knows(ctx, client, "SENTINELS", "sentinel", len(s.Sentinels)-1))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// knows returns nil when a sentinel lists so many servers that it has reached and sees nothing wrong with: whose
// flags are the one given and no other.
func (s *Sentinel) knows(ctx context.Context, client *redis.Client, list, flag string, want int) error {
	cmd := redis.NewMapStringStringSliceCmd(ctx, "SENTINEL", list, s.MasterName)
	err := client.Process(ctx, cmd)
	known := slices.DeleteFunc(cmd.Val(), func(server map[string]string) bool {
		return server["flags"] != flag || server["runid"] == "" // without one it was only heard of, and could not be promoted
	})
	if err == nil && len(known) != want {
		err = fmt.Errorf("knows %d of %d %s", len(known), want, list)
	}
	return err
}
