package documents

import (
	"context"

	"github.com/rategen/rategen/runtime/internal/terms"
)

// A Through is a store to which a way leads that may fail, or take a while.
type Through struct {
	terms.Store
	Way func(ctx context.Context, ask func() error) error
}

// Take implements [terms.Store].
func (s Through) Take(ctx context.Context, calls []terms.Call) error {
	return s.Way(ctx, func() error { return s.Store.Take(ctx, calls) })
}

// Peek implements [terms.Store].
func (s Through) Peek(ctx context.Context, calls []terms.Call) error {
	return s.Way(ctx, func() error { return s.Store.Peek(ctx, calls) })
}

// Settle implements [terms.Store].
func (s Through) Settle(ctx context.Context, charges []terms.Charge) error {
	return s.Way(ctx, func() error { return s.Store.Settle(ctx, charges) })
}

// Renew implements [terms.Store].
func (s Through) Renew(ctx context.Context, calls []terms.Call) error {
	return s.Way(ctx, func() error { return s.Store.Renew(ctx, calls) })
}

// Hold implements [terms.Store].
func (s Through) Hold(ctx context.Context, charges []terms.Charge) error {
	return s.Way(ctx, func() error { return s.Store.Hold(ctx, charges) })
}

// Reset implements [terms.Store].
func (s Through) Reset(ctx context.Context, charges []terms.Charge) error {
	return s.Way(ctx, func() error { return s.Store.Reset(ctx, charges) })
}
