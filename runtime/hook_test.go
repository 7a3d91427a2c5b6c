package runtime_test

import (
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
)

type (
	hook  = redistest.Hook
	reply = redistest.Reply
)

var failing, connects = redistest.Failing, redistest.Connects

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
