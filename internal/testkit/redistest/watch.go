package redistest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"
)

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
