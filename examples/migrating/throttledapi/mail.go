// Package throttledapi has a limit by throttled, and by a directive.
package throttledapi

import (
	"context"
	"fmt"

	"github.com/throttled/throttled/v2"
)

//go:generate go tool rategen

// Quota is five mails at once, and five a minute in the long run.
var Quota = throttled.RateQuota{MaxRate: throttled.PerMin(5), MaxBurst: 4}

// Before limits mails by throttled.
type Before struct {
	Next    Mailer
	Limiter *throttled.GCRARateLimiterCtx // of Quota
}

// Send sends a mail.
func (b Before) Send(ctx context.Context, to string) error {
	limited, result, err := b.Limiter.RateLimitCtx(ctx, to, 1)
	if err != nil {
		return err
	}
	if limited {
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
