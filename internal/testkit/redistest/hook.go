package redistest

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"
)

// A Hook is what a client does with commands in place of sending them: with one, or with
// those of a pipeline.
type Hook func(cmds []redis.Cmder, send func() error) error

// DialHook leaves dials as they are.
func (Hook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook has h do what is done with a command.
func (h Hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return h([]redis.Cmder{cmd}, func() error { return next(ctx, cmd) })
	}
}

// ProcessPipelineHook has h do what is done with a pipeline.
func (h Hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		return h(cmds, func() error { return next(ctx, cmds) })
	}
}

// Failing has commands fail.
func Failing(cmds []redis.Cmder, err error) error {
	for _, cmd := range cmds {
		cmd.SetErr(err)
	}
	return err
}

// Connects reports whether commands are part of making a connection. On a busy machine a
// store has more made while calls are under way.
func Connects(cmds ...redis.Cmder) bool {
	return !slices.ContainsFunc(cmds, func(cmd redis.Cmder) bool {
		return !slices.Contains([]string{"ping", "hello", "client"}, cmd.Name())
	})
}

// A Reply is an error that a server replied.
type Reply string

func (r Reply) Error() string { return string(r) }

// RedisError says that it is one of Redis.
func (Reply) RedisError() {}
