// Package goredis is the go-redis client behind [rediswire.Client].
//
// It is handed a client, which stays its owner's to close, and promises to send each
// script at most once, whatever the client is set to retry. It adds no allocation to what
// go-redis makes.
package goredis

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime/rediswire"
)

// New returns a client. It takes one that is no [redis.ClusterClient] or [redis.Ring] for
// one of a single server.
func New(client redis.UniversalClient) rediswire.Client {
	switch c := client.(type) {
	case *redis.Client:
		return node{c}
	case *redis.ClusterClient:
		return cluster{c}
	case *redis.Ring:
		return ring{c}
	}
	return &other{client}
}

// Same reports whether two clients are of one client of go-redis. It is false for a type that go-redis
// does not have.
func Same(a, b rediswire.Client) bool {
	switch a.(type) {
	case node, cluster, ring:
		return a == b
	}
	return false
}

// A node is a client of a single server, or of one of a cluster. Like the others it embeds no client: each of
// its 600 methods would be compiled again, into every program.
type node struct{ client *redis.Client }

func (n node) Execute(ctx context.Context, scripts []*rediswire.Script) {
	execute(ctx, n.client, scripts)
}

func (n node) Do(ctx context.Context, commands []rediswire.Command) { do(ctx, n.client, commands) }

func (n node) About() rediswire.About {
	options := n.client.Options()
	return rediswire.About{
		Address:     options.Addr,
		Punctual:    options.ContextTimeoutEnabled,
		Most:        options.PoolSize,
		Connections: int(n.client.PoolStats().TotalConns),
	}
}

// Patient returns a client that has no hooks, which may count commands.
func (n node) Patient(d time.Duration) rediswire.Server { return node{n.client.WithTimeout(d)} }

func (n node) Advice() (set, now string) {
	return advice(n.client.Options().ContextTimeoutEnabled, n.client.Options().ReadTimeout)
}

// A command is a script that go-redis runs at most once: it retries timeouts by default,
// and a script that ran before the reply was lost would charge twice.
type command struct{ *redis.IntSliceCmd }

// NoRetry overrides the method of redis.IntSliceCmd.
func (command) NoRetry() bool { return true }

// A go-redis that asks no command (before 9.19) would send scripts again and charge
// twice. It does not compile.
var _ interface{ NoRetry() bool } = redis.Cmder(nil)

// execute has a client execute scripts. Several are sent as a pipeline.
func execute(ctx context.Context, client redis.UniversalClient, scripts []*rediswire.Script) {
	var failed error
	if len(scripts) == 1 && !scripts[0].Asking {
		failed = client.Process(ctx, begin(ctx, scripts[0]))
	} else {
		pipeline := client.Pipeline()
		for _, s := range scripts {
			if s.Asking {
				_ = pipeline.Process(ctx, redis.NewCmd(ctx, "asking"))
			}
			_ = pipeline.Process(ctx, begin(ctx, s))
		}
		failed = exec(ctx, pipeline)
	}
	for _, s := range scripts {
		cmd := s.Own.(*redis.IntSliceCmd)
		var err error
		s.Numbers, err = cmd.Result()
		s.Err = outcome(err, failed, s.Numbers != nil)
		*cmd = redis.IntSliceCmd{} // which is kept, and holds on to nothing
	}
}

// begin makes the command of a script, in the memory of the last one.
func begin(ctx context.Context, s *rediswire.Script) command {
	cmd, is := s.Own.(*redis.IntSliceCmd)
	if !is {
		cmd = new(redis.IntSliceCmd)
		s.Own = cmd
	}
	*cmd = *redis.NewIntSliceCmd(ctx, s.Args...)
	return command{cmd}
}

var errSilent = errors.New("the redis client has returned neither a reply nor an error: one of its hooks has not passed the command on, perhaps")

// outcome returns the error of a command that may have a reply: its own, or that of what
// it was sent with. Go-redis leaves commands without either where a server answers with
// an error when the connection is set up, because of a password say.
func outcome(own, failed error, replied bool) error {
	if own != nil {
		return marked(own)
	}
	if replied {
		return nil
	}
	if failed != nil {
		return marked(failed)
	}
	return errSilent
}

// marked returns an error of go-redis as package rediswire has it.
func marked(err error) error {
	if err == nil {
		return nil
	}
	if err == redis.Nil {
		return rediswire.ErrNil
	}
	if errors.Is(err, redis.ErrClosed) {
		return rediswire.Closed(err)
	}
	if errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) {
		return rediswire.NotSent(err)
	}
	return err
}
