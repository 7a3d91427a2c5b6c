// Package compare runs an old limiter and a new one on the same calls.
package compare

import (
	"context"
	"sync/atomic"

	"github.com/rategen/rategen/runtime/observe"
)

//go:generate go tool rategen

// Mailer has the new limit, which refuses nobody yet.
type Mailer interface {
	// Send sends a mail.
	//
	//ratelimit:key=#to window=1m max=5 algorithm=token-bucket mode=shadow
	Send(ctx context.Context, to string) error
}

// Counts are calls by what the old limit and the new one made of them.
type Counts struct{ BothAdmit, BothRefuse, OnlyOldRefuses, OnlyNewRefuses atomic.Int64 }

// Compared counts. Its next is the new limit around the old one: both see every call.
type Compared struct {
	Next       Mailer           // NewRateLimitedMailer(old, limiter)
	OldRefused func(error) bool // whether an error is the old limit's refusal
	Counts     Counts
}

// Send sends a mail, if the old limit admits it.
func (c *Compared) Send(ctx context.Context, to string) error {
	newRefused := false
	err := c.Next.Send(observe.WithRecorder(ctx, func(ev observe.DecisionEvent) {
		newRefused = newRefused || ev.Verdict == observe.VerdictShadowRefused
	}), to)
	oldRefused := c.OldRefused(err)
	switch {
	case oldRefused && newRefused:
		c.Counts.BothRefuse.Add(1)
	case oldRefused:
		c.Counts.OnlyOldRefuses.Add(1)
	case newRefused:
		c.Counts.OnlyNewRefuses.Add(1)
	default:
		c.Counts.BothAdmit.Add(1)
	}
	return err
}
