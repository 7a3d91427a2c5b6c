// Package credits lets customers use what they have paid for in advance, and pay for more
// while calls run.
package credits

import "context"

//go:generate go tool rategen

// An Account is what the database of payments says of a customer.
type Account struct {
	ID string
	// Batch is the number of the credits, which the database counts up when they lapse: a year
	// after the first of them was bought, at the latest.
	Batch int
	// Bought is how many credits of the batch were ever bought. It only grows.
	Bought int64
}

// Printer is the service.
type Printer interface {
	// Print prints pages, at a credit each.
	//
	//ratelimit:key=#a.ID,#a.Batch window=8784h max=#a.Bought cost=#pages algorithm=fixed-window fail=closed refund="#err != nil" name=credits message="no credits left"
	Print(ctx context.Context, a Account, pages int) error
}
