// Package temporaljob limits an activity of Temporal.
package temporaljob

import (
	"context"
	"errors"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/rategen/rategen/runtime"
)

//go:generate go tool rategen

// Mails is activities.
type Mails interface {
	// Send sends a mail.
	//
	//ratelimit:key=#to window=1h max=1
	Send(ctx context.Context, to, text string) error
}

// retryLater has an activity that was refused run again when there is room for it. Benign
// errors count for no metric of failures. Errors have no cause, since Temporal keeps those,
// and shows them: that of an outage has the address of Redis.
func retryLater(_ context.Context, err error) error {
	var options temporal.ApplicationErrorOptions
	if limited, ok := errors.AsType[*runtime.LimitedError](err); ok && limited.RetryAfter != runtime.Never {
		options.NextRetryDelay, options.Category = limited.RetryAfter, temporal.ApplicationErrorCategoryBenign
	}
	return temporal.NewApplicationErrorWithOptions(err.Error(), "RateLimit", options)
}

// register registers activities behind their limits.
func register(w worker.ActivityRegistry, mails Mails, limiter *runtime.Limiter) {
	w.RegisterActivity(NewRateLimitedMails(mails, limiter).Send)
}
