// Package byhand wires the service in one function.
package byhand

import (
	"log/slog"

	"github.com/rategen/rategen/examples/wiring/quotes"
	"github.com/rategen/rategen/runtime"
)

// New returns the service behind its wrappers. The outermost comes first: it logs
// refusals too, a price from the cache counts as a call, and tries of one call count once.
func New(exchange *quotes.Exchange, limiter *runtime.Limiter, log *slog.Logger) quotes.Quotes {
	var service quotes.Quotes = exchange
	service = quotes.Retried{Next: service}
	service = &quotes.Cached{Next: service}
	service = quotes.NewRateLimitedQuotes(service, limiter)
	return quotes.Logged{Next: service, Log: log}
}

// NewCacheFirst returns the service with the cache outside of the limit: a price from
// the cache counts for nothing.
func NewCacheFirst(exchange *quotes.Exchange, limiter *runtime.Limiter, log *slog.Logger) quotes.Quotes {
	var service quotes.Quotes = quotes.Retried{Next: exchange}
	service = quotes.NewRateLimitedQuotes(service, limiter)
	service = &quotes.Cached{Next: service}
	return quotes.Logged{Next: service, Log: log}
}
