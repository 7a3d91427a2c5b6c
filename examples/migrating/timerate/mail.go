// Package timerate has a limit by golang.org/x/time/rate, and by a directive.
package timerate

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

//go:generate go tool rategen

// Before limits mails by x/time/rate, in this process.
type Before struct {
	Next Mailer

	limiters sync.Map // of each address, and never removed
}

// Send sends a mail.
func (b *Before) Send(ctx context.Context, to string) error {
	limiter, _ := b.limiters.LoadOrStore(to, rate.NewLimiter(rate.Every(time.Minute/5), 5))
	if !limiter.(*rate.Limiter).Allow() {
		return errors.New("too many mails")
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
