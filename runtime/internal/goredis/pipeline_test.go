package goredis_test

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime/internal/goredis"
	"github.com/rategen/rategen/runtime/rediswire"
)

// own is a client of a type that package goredis does not know.
type own struct{ *redis.Client }

// TestHooks has hooks answer in place of servers, by an error that they give to no command,
// after the server has answered too, and by nothing. None of that is a result.
func TestHooks(t *testing.T) {
	t.Parallel()
	refused := redistest.Reply("WRONGPASS invalid username-password pair or user is disabled.")
	server := redistest.Start(t)
	for name, client := range map[string]func() redis.UniversalClient{
		"node":  func() redis.UniversalClient { return server.Client(t) },
		"other": func() redis.UniversalClient { return own{server.Client(t)} },
		"ring": func() redis.UniversalClient {
			ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"one": server.Addr}})
			t.Cleanup(func() { _ = ring.Close() })
			return ring
		},
	} {
		for how, hook := range map[string]redistest.Hook{
			"before": func([]redis.Cmder, func() error) error { return refused },
			"after": func(_ []redis.Cmder, send func() error) error {
				_ = send()
				return refused
			},
			"silent": func([]redis.Cmder, func() error) error { return nil },
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				c := client()
				c.AddHook(hook)
				wire := goredis.New(c)
				for _, n := range []int{1, 2, 5} {
					scripts, commands := make([]*rediswire.Script, n), make([]rediswire.Command, n)
					for i := range n {
						scripts[i] = &rediswire.Script{Args: []any{"eval", "return {1}", new(int64)}}
						commands[i] = rediswire.Command{Args: []string{"info", "memory"}}
					}
					wire.Execute(context.Background(), scripts)
					wire.Do(context.Background(), commands)
					for i := range n {
						for _, err := range []error{scripts[i].Err, commands[i].Err} {
							if err == nil || how != "silent" && !errors.Is(err, refused) {
								t.Errorf("%d of %d: got %v", i, n, err)
							}
						}
					}
				}
			})
		}
	}
}
