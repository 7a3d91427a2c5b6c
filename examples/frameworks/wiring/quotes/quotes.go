// Package quotes is a service with a limit, and with decorators of other kinds.
package quotes

import (
	"context"
	"errors"
)

//go:generate go tool rategen
//go:generate go tool mockgen -source=quotes.go -destination=../mocks/gomock/quotes.go -package=gomock

// Quotes knows prices.
type Quotes interface {
	// Price returns the price of a share.
	//
	//ratelimit:key=#symbol window=1m max=3
	Price(ctx context.Context, symbol string) (int, error)
}

// ErrAway is returned while the exchange does not answer.
var ErrAway = errors.New("the exchange does not answer")

// An Exchange is the plain service. It is a type of its own, not a Quotes: who asks for
// Quotes never gets it by accident.
type Exchange struct {
	Calls int // that have arrived
	Fails int // how many of the next ones fail
}

// NewExchange returns an exchange that answers.
func NewExchange() *Exchange { return new(Exchange) }

// Price implements Quotes.
func (e *Exchange) Price(context.Context, string) (int, error) {
	e.Calls++
	if e.Fails > 0 {
		e.Fails--
		return 0, ErrAway
	}
	return 100, nil
}
