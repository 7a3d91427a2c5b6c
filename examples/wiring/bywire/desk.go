// Package bywire wires the service with google/wire.
package bywire

import (
	"github.com/rategen/rategen/examples/wiring/quotes"
	"github.com/rategen/rategen/runtime"
)

// A Desk uses quotes, and does not know of limits.
type Desk struct{ Quotes quotes.Quotes }

func newDesk(quotes quotes.Quotes) *Desk { return &Desk{quotes} }

// newQuotes is the only provider of Quotes: it asks for the plain service by its own
// type.
func newQuotes(exchange *quotes.Exchange, limiter *runtime.Limiter) quotes.Quotes {
	return quotes.NewRateLimitedQuotes(exchange, limiter)
}
