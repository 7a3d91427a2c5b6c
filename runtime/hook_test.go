package runtime_test

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// A hook is what a client does with commands in place of sending them: with one, or with
// those of a pipeline.
type hook func(cmds []redis.Cmder, send func() error) error

func (hook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return h([]redis.Cmder{cmd}, func() error { return next(ctx, cmd) })
	}
}

func (h hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		return h(cmds, func() error { return next(ctx, cmds) })
	}
}

// failing has commands fail.
func failing(cmds []redis.Cmder, err error) error {
	for _, cmd := range cmds {
		cmd.SetErr(err)
	}
	return err
}

// connects reports whether commands are part of making a connection. On a busy
// machine a store has more made while calls are under way.
func connects(cmds ...redis.Cmder) bool {
	return !slices.ContainsFunc(cmds, func(cmd redis.Cmder) bool {
		return !slices.Contains([]string{"ping", "hello", "client"}, cmd.Name())
	})
}

// commands are the names of what clients send. A pipeline is one.
type commands struct {
	mu    sync.Mutex
	names []string
}

// counting counts what a client sends from now on.
func counting(client interface{ AddHook(redis.Hook) }) *commands {
	c := new(commands)
	client.AddHook(hook(c.count))
	return c
}

func (c *commands) count(cmds []redis.Cmder, send func() error) error {
	if !connects(cmds...) {
		name := "pipeline"
		if len(cmds) == 1 {
			name = cmds[0].Name()
		}
		c.mu.Lock()
		c.names = append(c.names, name)
		c.mu.Unlock()
	}
	return send()
}

// sent returns what was sent since the last time, but for what made connections.
func (c *commands) sent() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	names := c.names
	c.names = nil
	return names
}

// scripts returns how many scripts were sent since the last time.
func (c *commands) scripts() int {
	return len(slices.DeleteFunc(c.sent(), func(name string) bool { return !strings.HasPrefix(name, "eval") }))
}
