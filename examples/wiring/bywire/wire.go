//go:build wireinject

package bywire

import (
	"github.com/google/wire"

	"github.com/rategen/rategen/examples/wiring/quotes"
	"github.com/rategen/rategen/runtime"
)

// New returns a desk behind the limits of quotes.
func New(limiter *runtime.Limiter) *Desk {
	panic(wire.Build(quotes.NewExchange, newQuotes, newDesk))
}
