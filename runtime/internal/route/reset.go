package route

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime/internal/batch"
	"github.com/rategen/rategen/runtime/internal/breaker"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/script"
)

// Reset removes a key. A server that does not respond keeps no other's keys from
// being reset.
func (r *Router) Reset(ctx context.Context, key []byte) error {
	if m := r.cfg.Denials; m != nil {
		defer m.Forget(key)
	}
	slot := 0
	if r.slot != nil {
		slot = r.slot(key)
	}
	b, err := r.batcher(ctx, key, slot)
	if err != nil {
		return err
	}
	arrived := clock.Now()
	permission, ok := b.Breaker.Allow(arrived)
	if !ok {
		return breaker.ErrOpen
	}
	err = r.within(ctx, b, func(ctx context.Context) error {
		err := unlink(ctx, b.Client, key)
		if script.Moved(err) && r.cluster != nil {
			err = unlink(ctx, r.client, key)
		}
		return err
	})
	settle(ctx, b.Breaker, permission, arrived, err)
	if err != nil {
		r.moved(b, slot, err)
	}
	return err
}

// unlink removes a key. The client of a cluster finds the server itself, but asks one
// at random about commands before its first, and that one may not respond for long:
// the client of the key's server is to be preferred.
func unlink(ctx context.Context, client redis.UniversalClient, key []byte) error {
	return script.Clean(client.Unlink(ctx, string(key)).Err())
}

// settle tells a breaker what became of a command that was sent at an instant
// for a caller with a context.
func settle(ctx context.Context, b *breaker.Breaker, permission breaker.Permission, sent time.Duration, err error) {
	switch {
	case script.Answered(err):
		b.Success(permission)
	case ctx.Err() != nil:
		b.Cancel(permission) // the caller gave up, which says nothing about Redis
	default:
		b.Failure(permission, sent)
	}
}

// within runs do, which asks the server of a batcher, and gives up when the context or
// the timeout ends, which go-redis by default does not. Then do may still be running.
func (r *Router) within(ctx context.Context, b *batch.Batcher, do func(context.Context) error) error {
	ctx, cancel := r.limited(ctx)
	select {
	case b.Aside <- struct{}{}:
	case <-ctx.Done():
		defer cancel()
		return ended(ctx)
	}
	done := make(chan error, 1)
	go func() {
		done <- r.guard(func() error { return do(ctx) })
		<-b.Aside
	}()
	defer cancel()
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

// limited returns a context that ends with the timeout. Its cause tells that
// from the end of ctx, which is no failure of Redis's.
func (r *Router) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, r.cfg.Timeout, batch.LateError(r.cfg.Timeout))
}

// ended returns why a context of limited has ended: a LateError, or its parent's
// error, whatever the parent's cause.
func ended(ctx context.Context) error {
	if late, ok := context.Cause(ctx).(batch.LateError); ok {
		return late
	}
	return ctx.Err()
}

// contextual reports whether err is that of a context.
func contextual(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
