// Package guarded has a service that does nothing behind limits that rategen
// has generated, to see what those cost.
package guarded

import "context"

//go:generate go tool rategen

// A Service does nothing, by two methods.
type Service interface {
	// Room has room for every call.
	//
	//ratelimit:key=#key algorithm=token-bucket window=240h max=200000
	Room(ctx context.Context, key string) error

	// NoRoom has none after ten calls.
	//
	//ratelimit:key=#key algorithm=token-bucket window=1h max=10
	NoRoom(ctx context.Context, key string) error
}

// Plain is the service without limits.
type Plain struct{}

// Room implements [Service].
func (Plain) Room(context.Context, string) error { return nil }

// NoRoom implements [Service].
func (Plain) NoRoom(context.Context, string) error { return nil }
