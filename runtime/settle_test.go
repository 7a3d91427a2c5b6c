package runtime_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// A refund keeps the values of its caller's context, and gets SettleTimeout on a
// store that does not end by itself.
func TestSettleTimeout(t *testing.T) {
	bubble(t, func(t *testing.T) {
		type name struct{}
		store := newFake()
		var got any
		store.settle = func(ctx context.Context, _ []terms.Charge) error {
			got = ctx.Value(name{})
			<-ctx.Done()
			return ctx.Err()
		}
		limiter := runtime.New(store, quiet)
		d := taken(t, limiter, wide.Limit(nil))
		ctx, cancel := context.WithTimeout(context.WithValue(context.Background(), name{}, "value"), time.Millisecond)
		defer cancel()
		var err error
		took := elapsed(func() { err = limiter.Refund(ctx, d) })
		if took != runtime.SettleTimeout || !errors.Is(err, context.DeadlineExceeded) || got != "value" {
			t.Errorf("got %v after %v; the store got the value %v", err, took, got)
		}
	})
}
