// Package riverjob limits a worker of river.
package riverjob

import (
	"context"
	"errors"

	"github.com/riverqueue/river"

	"github.com/rategen/rategen/runtime"
)

//go:generate go tool rategen

// Mail is the arguments of a job.
type Mail struct {
	To string `json:"to"`
}

// Kind implements [river.JobArgs].
func (Mail) Kind() string { return "mail" }

// Mails is what a worker does.
type Mails interface {
	// Work sends the mail of a job.
	//
	//ratelimit:key=#job.Args.To window=1h max=1 invalid=refuse
	Work(ctx context.Context, job *river.Job[Mail]) error
}

// snooze has a job that was refused wait until there is room for it.
func snooze(_ context.Context, err error) error {
	if limited, ok := errors.AsType[*runtime.LimitedError](err); ok && limited.RetryAfter != runtime.Never {
		return river.JobSnooze(limited.RetryAfter)
	}
	return err
}

// addWorker adds a worker behind its limits.
func addWorker(workers *river.Workers, mails Mails, limiter *runtime.Limiter) error {
	return river.AddWorkerSafely(workers, river.WorkFunc(NewRateLimitedMails(mails, limiter).Work))
}
