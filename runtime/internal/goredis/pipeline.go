package goredis

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// exec sends a pipeline. An error that is none of its commands' is that of each: a hook
// says so, or no connection could be had.
func exec(ctx context.Context, pipeline redis.Pipeliner) error {
	commands, err := pipeline.Exec(ctx)
	if err == nil {
		return nil
	}
	for _, cmd := range commands {
		if cmd.Err() != nil {
			return err
		}
	}
	for _, cmd := range commands {
		cmd.SetErr(err)
	}
	return err
}
