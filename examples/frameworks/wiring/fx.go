package wiring

import (
	"context"

	"go.uber.org/fx"

	"github.com/rategen/rategen/examples/frameworks/wiring/quotes"
	"github.com/rategen/rategen/runtime"
)

// Module provides Quotes. That another module provides them plainly is no obstacle:
// Limited decorates what is there.
var Module = fx.Module("quotes",
	fx.Provide(
		fx.Annotate(quotes.NewExchange, fx.As(new(quotes.Quotes))),
		newLimiter,
	),
)

// Limited puts the limits around the Quotes of the whole application.
var Limited = fx.Decorate(func(next quotes.Quotes, limiter *runtime.Limiter) quotes.Quotes {
	return quotes.NewRateLimitedQuotes(next, limiter)
})

// newLimiter returns a limiter that is closed when the application stops.
func newLimiter(lifecycle fx.Lifecycle, store runtime.Store) *runtime.Limiter {
	limiter := runtime.New(store)
	lifecycle.Append(fx.Hook{OnStop: func(context.Context) error { return limiter.Close() }})
	return limiter
}
