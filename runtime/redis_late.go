package runtime

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// maxAside is how many commands beside trips are under way at a time.
const maxAside = 64

// within runs do and gives up when the context ends, which go-redis by default
// does not. Then do may still be running.
func (s *RedisStore) within(ctx context.Context, do func() error) error {
	select {
	case s.aside <- struct{}{}:
	case <-ctx.Done():
		return ended(ctx)
	}
	done := make(chan error, 1)
	go func() {
		done <- s.guard(do)
		<-s.aside
	}()
	select {
	case err := <-done:
		if contextual(err) && ctx.Err() != nil {
			return ended(ctx)
		}
		return err
	case <-ctx.Done():
		return ended(ctx)
	}
}

// ended returns why a context of withTimeout has ended: a lateError, or its
// parent's error, whatever the parent's cause.
func ended(ctx context.Context) error {
	if late, ok := context.Cause(ctx).(lateError); ok {
		return late
	}
	return ctx.Err()
}

// contextual reports whether err is that of a context.
func contextual(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// withTimeout returns a context that ends with the store's timeout. Its cause
// tells that from the end of ctx, which is no failure of Redis's.
func (s *RedisStore) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, s.timeout, s.late())
}

// late is the error of a call that has waited for as long as it may.
func (s *RedisStore) late() error { return lateError(s.timeout) }

// A lateError says how long a call has waited in vain.
type lateError time.Duration

func (e lateError) Error() string {
	return fmt.Sprintf("redis gave no answer within %v", time.Duration(e))
}

// Timeout reports that the error is one of time, as in package net.
func (lateError) Timeout() bool { return true }
