package quotes

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/rategen/rategen/runtime"
)

// Logged logs every call and its outcome.
type Logged struct {
	Next Quotes
	Log  *slog.Logger
}

// Price implements Quotes.
func (l Logged) Price(ctx context.Context, symbol string) (int, error) {
	price, err := l.Next.Price(ctx, symbol)
	l.Log.InfoContext(ctx, "price", "symbol", symbol, "limited", errors.Is(err, runtime.ErrLimited), "err", err)
	return price, err
}

// Cached remembers prices.
type Cached struct {
	Next Quotes

	prices sync.Map
}

// Price implements Quotes.
func (c *Cached) Price(ctx context.Context, symbol string) (int, error) {
	if price, ok := c.prices.Load(symbol); ok {
		return price.(int), nil
	}
	price, err := c.Next.Price(ctx, symbol)
	if err == nil {
		c.prices.Store(symbol, price)
	}
	return price, err
}

// Retried tries a call up to three times. It does not try a refused call again: there is
// no room for it before RetryAfter.
type Retried struct{ Next Quotes }

// Price implements Quotes.
func (r Retried) Price(ctx context.Context, symbol string) (price int, err error) {
	for range 3 {
		if price, err = r.Next.Price(ctx, symbol); err == nil || errors.Is(err, runtime.ErrLimited) {
			break
		}
	}
	return price, err
}
