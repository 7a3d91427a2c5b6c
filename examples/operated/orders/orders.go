// Package orders is a service that several customers use more than they may.
package orders

import (
	"context"
	"errors"
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

	// LogIn checks the password of a user who comes from a network.
	//
	//ratelimit:name=login.user key=#user window=15m max=5 block=1h
	//ratelimit:name=login.address key=#network window=15m max=50 block=1h
	LogIn(ctx context.Context, user, network, password string) error
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

// LogIn implements [Service].
func (Shop) LogIn(context.Context, string, string, string) error { return errors.New("wrong password") }
