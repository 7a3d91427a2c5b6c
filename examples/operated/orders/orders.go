// Package orders is a service that several customers use more than they may.
package orders

import (
	"context"
	"time"
)

//go:generate go tool rategen

// Service takes orders of customers.
type Service interface {
	// Create creates an order.
	//
	//ratelimit:key=#customer window=1s max=10 message="10 orders a second are the limit of your plan"
	Create(ctx context.Context, customer string) error

	// Search searches a customer's orders.
	//
	//ratelimit:key=#customer window=1s max=40 algorithm=token-bucket burst=60
	Search(ctx context.Context, customer, text string) (int, error)

	// Export writes all orders of a customer to a file, which takes a while.
	//
	//ratelimit:key=`"all"` window=10s max=3 algorithm=concurrency
	Export(ctx context.Context, customer string) error
}

// Shop is the service without limits.
type Shop struct{}

// Create implements [Service].
func (Shop) Create(context.Context, string) error { return nil }

// Search implements [Service].
func (Shop) Search(_ context.Context, _, text string) (int, error) { return len(text), nil }

// Export implements [Service].
func (Shop) Export(ctx context.Context, _ string) error {
	select {
	case <-time.After(700 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
