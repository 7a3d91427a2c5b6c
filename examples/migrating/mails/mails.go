// Package mails has a limit by redis_rate, by throttled, by golang.org/x/time/rate, and by a directive.
package mails

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/throttled/throttled/v2"
	"golang.org/x/time/rate"
)

//go:generate go tool rategen

// Mailer is limited by its directive.
type Mailer interface {
	// Send sends a mail.
	//
	//ratelimit:key=#to window=1m max=5 algorithm=token-bucket message="too many mails"
	Send(ctx context.Context, to string) error
}

// ByRedisRate limits mails by redis_rate.
type ByRedisRate struct {
	Next    Mailer
	Limiter *redis_rate.Limiter
}

// Send sends a mail.
func (b ByRedisRate) Send(ctx context.Context, to string) error {
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

// Quota is five mails at once, and five a minute in the long run.
var Quota = throttled.RateQuota{MaxRate: throttled.PerMin(5), MaxBurst: 4}

// ByThrottled limits mails by throttled.
type ByThrottled struct {
	Next    Mailer
	Limiter *throttled.GCRARateLimiterCtx // of Quota
}

// Send sends a mail.
func (b ByThrottled) Send(ctx context.Context, to string) error {
	limited, result, err := b.Limiter.RateLimitCtx(ctx, to, 1)
	if err != nil {
		return err
	}
	if limited {
		return fmt.Errorf("too many mails, come back in %v", result.RetryAfter)
	}
	return b.Next.Send(ctx, to)
}

// ByTimeRate limits mails by x/time/rate, in this process.
type ByTimeRate struct {
	Next Mailer

	limiters sync.Map // of each address, and never removed
}

// Send sends a mail.
func (b *ByTimeRate) Send(ctx context.Context, to string) error {
	limiter, _ := b.limiters.LoadOrStore(to, rate.NewLimiter(rate.Every(time.Minute/5), 5))
	if !limiter.(*rate.Limiter).Allow() {
		return errors.New("too many mails")
	}
	return b.Next.Send(ctx, to)
}
