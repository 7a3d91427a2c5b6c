package wiring

import (
	"github.com/rategen/rategen/examples/frameworks/wiring/quotes"
	"github.com/rategen/rategen/runtime"
)

// ProvideQuotes is the only provider of Quotes: it asks for the plain service by its own
// type.
func ProvideQuotes(exchange *quotes.Exchange, limiter *runtime.Limiter) quotes.Quotes {
	return quotes.NewRateLimitedQuotes(exchange, limiter)
}
