// Package wiring tries what docs/wiring.md shows: ways to put a limited service together,
// to replace it in tests, and to change its limits while it runs.
package wiring

import (
	"log/slog"

	"github.com/rategen/rategen/examples/frameworks/wiring/quotes"
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
