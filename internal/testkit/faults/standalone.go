package faults

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// A machine is a standalone server, and a connection to it over which faults
// are set. That one was there before them, so that no password or user that
// comes later concerns it.
type machine struct {
	*redistest.Server
	tb    testing.TB
	admin *redis.Conn
}

func newMachine(tb testing.TB, args ...string) *machine {
	server := redistest.Start(tb, args...)
	admin := server.Client(tb, func(o *redis.Options) {
		o.ReadTimeout = time.Minute
	}).Conn()
	tb.Cleanup(func() { _ = admin.Close() })
	return &machine{server, tb, admin}
}

// clients returns what makes stores on the machine, each with the options of c and others
// on top.
func (m *machine) clients(c clients, options ...func(*redis.Options)) connect {
	var set redis.Options
	for _, option := range options {
		option(&set)
	}
	client := func() redis.UniversalClient {
		return m.Client(m.tb, append([]func(*redis.Options){c.tune}, options...)...)
	}
	return c.store(m.tb, client, &redis.UniversalOptions{Addrs: []string{m.Addr}, Username: set.Username, Password: set.Password})
}

// do executes a command over the connection of the machine.
func (m *machine) do(command string, more ...any) {
	m.tb.Helper()
	var args []any
	for _, word := range strings.Fields(command) {
		args = append(args, word)
	}
	if err := m.admin.Do(context.Background(), append(args, more...)...).Err(); err != nil && err != redis.Nil {
		m.tb.Errorf("%s: %v", command, err)
	}
}

// commands returns a function that executes commands.
func (m *machine) commands(commands ...string) func() {
	return func() {
		m.tb.Helper()
		for _, command := range commands {
			m.do(command)
		}
	}
}

var standalone = []Fault{
	{Name: "SIGSTOP", Where: Standalone, Classes: []string{"timeout"}, Quick: true, set: func(tb testing.TB, c clients) *site {
		m := newMachine(tb)
		return &site{connect: m.clients(c), begin: m.Pause, end: m.Resume}
	}},
	{Name: "SIGKILL, restarted", Where: Standalone, Failovers: 1, Classes: []string{"dial", "timeout"}, Quick: true, set: func(tb testing.TB, c clients) *site {
		m := newMachine(tb)
		return &site{connect: m.clients(c), begin: m.Kill, end: m.Restart}
	}},
	{Name: "SIGKILL, loading after the restart", Where: Standalone, Failovers: 1, Classes: []string{"loading", "timeout"}, set: loading},
	{Name: "FLUSHALL", Where: Standalone, Failovers: 1, set: func(tb testing.TB, c clients) *site {
		m := newMachine(tb)
		return &site{connect: m.clients(c), begin: m.commands("FLUSHALL"), end: func() {}}
	}},
	{Name: "out of memory, noeviction", Where: Standalone, Classes: []string{"oom"}, Quick: true, set: func(tb testing.TB, c clients) *site {
		m := newMachine(tb)
		return &site{connect: m.clients(c),
			begin: m.commands("CONFIG SET maxmemory-policy noeviction", "CONFIG SET maxmemory 1"),
			end:   m.commands("CONFIG SET maxmemory 0"),
		}
	}},
	{Name: "DEBUG SLEEP", Where: Standalone, Classes: []string{"timeout"}, set: asleep},
	{Name: "a script that does not end, SCRIPT KILL", Where: Standalone, Classes: []string{"busy"}, Quick: true, set: busy},
	{Name: "user without EVALSHA and EVAL", Where: Standalone, Classes: []string{"auth"}, Quick: true, set: func(tb testing.TB, c clients) *site {
		m := newMachine(tb)
		m.do("ACL SETUSER app on >secret ~* &* +@all")
		return &site{
			connect: m.clients(c, func(o *redis.Options) { o.Username, o.Password = "app", "secret" }),
			begin:   m.commands("ACL SETUSER app -evalsha -eval"),
			end:     m.commands("ACL SETUSER app +evalsha +eval"),
		}
	}},
	{Name: "password set, client has none", Where: Standalone, Classes: []string{"auth"}, set: func(tb testing.TB, c clients) *site {
		m := newMachine(tb)
		return &site{connect: m.clients(c),
			begin: m.commands("CONFIG SET requirepass new", "CLIENT KILL TYPE normal SKIPME yes"),
			end:   func() { m.do("CONFIG SET requirepass", "") },
		}
	}},
	{Name: "password changed, client has the old one", Where: Standalone, Classes: []string{"auth"}, set: func(tb testing.TB, c clients) *site {
		m := newMachine(tb)
		m.do("CONFIG SET requirepass old")
		return &site{
			connect: m.clients(c, func(o *redis.Options) { o.Password = "old" }),
			begin:   m.commands("CONFIG SET requirepass new", "CLIENT KILL TYPE normal SKIPME yes"),
			end:     m.commands("CONFIG SET requirepass old"),
		}
	}},
	{Name: "maxclients reached", Where: Standalone, Classes: []string{"dial", "timeout"}, set: func(tb testing.TB, c clients) *site {
		m := newMachine(tb)
		return &site{connect: m.clients(c),
			begin: m.commands("CONFIG SET maxclients 1", "CLIENT KILL TYPE normal SKIPME yes"),
			end:   m.commands("CONFIG SET maxclients 1000"),
		}
	}},
	{Name: "SCRIPT FLUSH, 200 times a second", Where: Standalone, Quick: true, set: flushed},
	{Name: "made a replica, read only", Where: Standalone, Failovers: 1, Classes: []string{"readonly", "timeout"}, set: func(tb testing.TB, c clients) *site {
		m := newMachine(tb)
		host, port, _ := net.SplitHostPort(redistest.Start(tb).Addr)
		return &site{connect: m.clients(c),
			begin: m.commands("REPLICAOF " + host + " " + port),
			end:   m.commands("REPLICAOF NO ONE"),
		}
	}},
	{Name: "pool of 1 connection, in use", Where: Standalone, Classes: []string{"pool", "timeout"}, Quick: true, set: crowded},
}

// crowded has somebody hold the one connection of every client.
func crowded(tb testing.TB, c clients) *site {
	m := newMachine(tb)
	var made []*redis.Client
	var held []*redis.Conn
	hold := func(client *redis.Client) {
		for range 100 {
			conn := client.Conn()
			if conn.Ping(context.Background()).Err() == nil { // it has the connection
				held = append(held, conn)
				return
			}
			_ = conn.Close()
		}
		tb.Errorf("the connection of a client cannot be had")
	}
	return &site{
		connect: func(opts ...runtime.RedisOption) *runtime.RedisStore {
			client := m.Client(tb, c.tune, func(o *redis.Options) { o.PoolSize = 1 })
			made = append(made, client)
			return runtime.NewRedisStore(client, opts...)
		},
		begin: func() {
			for _, client := range made {
				hold(client)
			}
		},
		end: func() {
			for _, conn := range held {
				_ = conn.Close()
			}
		},
	}
}

// loading kills the server, and has it load for two seconds at its restart.
func loading(tb testing.TB, c clients) *site {
	m := newMachine(tb)
	return &site{connect: m.clients(c),
		begin: func() { m.RestartLoading(2 * time.Second) },
		end:   m.WaitServing,
	}
}

// asleep has the server sleep for two seconds.
func asleep(tb testing.TB, c clients) *site {
	var args []string
	if !strings.HasPrefix(redistest.Start(tb).Product(), "Redis 6.") {
		args = []string{"--enable-debug-command", "local"} // as Redis 6 always has it
	}
	m := newMachine(tb, args...)
	var wait sync.WaitGroup
	tb.Cleanup(wait.Wait)
	return &site{connect: m.clients(c),
		begin: func() { wait.Go(func() { m.do("DEBUG SLEEP 2") }) },
		end:   wait.Wait,
	}
}

// busy has the server execute a script until it is killed.
func busy(tb testing.TB, c clients) *site {
	m := newMachine(tb)
	m.do("CONFIG SET lua-time-limit 50") // milliseconds, 5000 by default
	stranger := m.Client(tb, func(o *redis.Options) { o.ReadTimeout, o.MaxRetries = time.Minute, -1 })
	var wait sync.WaitGroup
	tb.Cleanup(wait.Wait)
	return &site{connect: m.clients(c),
		begin: func() { wait.Go(func() { stranger.Eval(context.Background(), "while true do end", nil) }) },
		end:   func() { m.do("SCRIPT KILL"); wait.Wait() },
	}
}

// flushed forgets all scripts again and again.
func flushed(tb testing.TB, c clients) *site {
	m := newMachine(tb)
	var wait sync.WaitGroup
	stop := make(chan struct{})
	tb.Cleanup(wait.Wait)
	return &site{connect: m.clients(c),
		begin: func() {
			wait.Go(func() {
				tick := time.NewTicker(5 * time.Millisecond)
				defer tick.Stop()
				for {
					select {
					case <-stop:
						return
					case <-tick.C:
						m.do("SCRIPT FLUSH")
					}
				}
			})
		},
		end: func() { close(stop); wait.Wait() },
	}
}
