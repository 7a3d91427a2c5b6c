package redis

import (
	"context"
	"errors"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/internal/script"
	"github.com/rategen/rategen/runtime/rediswire"
)

// resetKey removes a key. A server that does not respond keeps no other's keys from
// being reset.
func (r *Router) resetKey(ctx context.Context, key []byte) error {
	defer r.forgetRefusal(key)
	slot := r.slot(key)
	b, err := r.batcher(ctx, key, slot)
	if err != nil {
		return err
	}
	arrived := clock.Now()
	permission, ok := b.breaker.Allow(arrived)
	if !ok {
		return ErrOpen
	}
	err = r.withTimeout(ctx, b, func(ctx context.Context) error {
		err := unlink(ctx, b.server, key)
		if script.Moved(err) && r.cluster != nil {
			err = unlink(ctx, r.client, key)
		}
		return err
	})
	settle(ctx, b.breaker, permission, arrived, err)
	if err != nil {
		r.moved(b, slot, err)
	}
	return err
}

// unlink removes a key. The client of a cluster finds the server itself, but asks one
// at random about commands before its first, and that one may not respond for long:
// the client of the key's server is to be preferred.
func unlink(ctx context.Context, server rediswire.Server, key []byte) error {
	command := []rediswire.Command{{Args: []string{"unlink", string(key)}, Key: 1}}
	server.Do(ctx, command)
	return private.Hide(rediswire.First(command))
}

// settle reports the result of a command to a breaker. The command was sent at an instant, for a
// caller with a context.
func settle(ctx context.Context, b *breaker, permission permission, sent time.Duration, err error) {
	if script.Answered(err) {
		b.Success(permission)
	} else if ctx.Err() != nil {
		b.Cancel(permission) // the caller gave up, which says nothing about Redis
	} else {
		b.Failure(permission, sent)
	}
}

// withTimeout runs do, which asks the server of a batcher, and gives up when the context or
// the timeout ends, which go-redis by default does not. Then do may still be running.
func (r *Router) withTimeout(ctx context.Context, b *batcher, do func(context.Context) error) error {
	ctx, cancel := r.limited(ctx)
	select {
	case b.aside <- struct{}{}:
	case <-ctx.Done():
		defer cancel()
		return contextError(ctx)
	}
	done := make(chan error, 1)
	go func() {
		done <- r.guard(func() error { return do(ctx) })
		<-b.aside
	}()
	defer cancel()
	select {
	case err := <-done:
		if isContextError(err) && ctx.Err() != nil {
			return contextError(ctx)
		}
		return err
	case <-ctx.Done():
		return contextError(ctx)
	}
}

// limited returns a context that ends with the timeout. Its cause distinguishes the timeout
// from the end of ctx, which is no failure of Redis.
func (r *Router) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, r.cfg.Timeout, LateError(r.cfg.Timeout))
}

// contextError returns why a context of limited has ended: a LateError, or its parent's
// error, whatever the parent's cause.
func contextError(ctx context.Context) error {
	cause := context.Cause(ctx)
	if isLate(cause) {
		return cause
	}
	return ctx.Err()
}

func isContextError(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
