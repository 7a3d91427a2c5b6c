package goredis

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime/rediswire"
)

// do has a client execute commands. Several are sent as a pipeline.
func do(ctx context.Context, client redis.UniversalClient, commands []rediswire.Command) {
	sent := make([]*redis.Cmd, len(commands))
	for i := range commands {
		args := make([]any, len(commands[i].Args))
		for j, arg := range commands[i].Args {
			args[j] = arg
		}
		sent[i] = redis.NewCmd(ctx, args...)
	}
	var failed error
	if len(sent) == 1 {
		failed = client.Process(ctx, sent[0])
	} else {
		pipeline := client.Pipeline()
		for _, cmd := range sent {
			_ = pipeline.Process(ctx, cmd)
		}
		failed = exec(ctx, pipeline)
	}
	for i, cmd := range sent {
		var err error
		commands[i].Value, err = cmd.Result()
		commands[i].Err = outcome(err, failed, commands[i].Value != nil)
	}
}
