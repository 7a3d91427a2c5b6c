// Package asynqjob limits a handler of asynq.
package asynqjob

import (
	"context"
	"errors"
	"time"

	"github.com/hibiken/asynq"

	"github.com/rategen/rategen/runtime"
)

//go:generate go tool rategen

// Mails is an [asynq.Handler].
type Mails interface {
	// ProcessTask sends the mail of a task.
	//
	//ratelimit:key=string(#task.Payload()) window=1h max=1 invalid=refuse
	ProcessTask(ctx context.Context, task *asynq.Task) error
}

// retryDelay has a task that was refused wait until there is room for it.
func retryDelay(n int, err error, task *asynq.Task) time.Duration {
	if limited, ok := errors.AsType[*runtime.LimitedError](err); ok {
		return limited.RetryAfter
	}
	return asynq.DefaultRetryDelayFunc(n, err, task)
}

// config has tasks that were refused wait for room. They have not failed: that does
// not count as one of their retries.
var config = asynq.Config{
	RetryDelayFunc: retryDelay,
	IsFailure:      func(err error) bool { return !errors.Is(err, runtime.ErrLimited) },
	Concurrency:    1,
}
