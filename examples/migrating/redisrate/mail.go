// Package redisrate has a limit by redis_rate, and by a directive.
package redisrate

import (
	"context"
	"fmt"
	"time"

	"github.com/go-redis/redis_rate/v10"
)

//go:generate go tool rategen

// Before limits mails by redis_rate.
type Before struct {
	Next    Mailer
	Limiter *redis_rate.Limiter
}

// Send sends a mail.
func (b Before) Send(ctx context.Context, to string) error {
	limit := redis_rate.Limit{Rate: 5, Burst: 5, Period: time.Minute}
	result, err := b.Limiter.Allow(ctx, "mail:"+to, limit)
	if err != nil {
		return err
	}
	if result.Allowed == 0 {
		return fmt.Errorf("too many mails, come back in %v", result.RetryAfter)
	}
	return b.Next.Send(ctx, to)
}

// Mailer is limited by its directive.
type Mailer interface {
	// Send sends a mail.
	//
	//ratelimit:key=#to window=1m max=5 algorithm=token-bucket message="too many mails"
	Send(ctx context.Context, to string) error
}
