// Package echoapi limits a handler of echo.
package echoapi

import (
	"net/http"

	"github.com/labstack/echo/v5"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rateecho"
	"github.com/rategen/rategen/runtime/ratehttp"
)

//go:generate go tool rategen

// Orders are handlers.
type Orders interface {
	// Show answers with an order.
	//
	//ratelimit:key=#c.Param("id") window=1h max=1 ctx=#c.Request().Context()
	Show(c *echo.Context) error
}

type orders struct{}

func (orders) Show(c *echo.Context) error {
	if c.Param("id") == "missing" {
		return echo.NewHTTPError(http.StatusNotFound, "no such order")
	}
	return c.String(http.StatusOK, "order "+c.Param("id"))
}

// Bare returns a server whose handlers are behind their limits, which knows nothing of refusals.
func Bare(limiter *runtime.Limiter) *echo.Echo {
	e, orders := echo.New(), orders{}
	e.GET("/orders/:id", NewRateLimitedOrders(orders, limiter).Show)
	return e
}

// Handler returns one that answers refusals.
func Handler(limiter *runtime.Limiter) http.Handler {
	e := Bare(limiter)
	e.Use(rateecho.Middleware())
	return e
}

// WithLimit returns one whose handler is behind a limit without a directive.
func WithLimit(limit ratehttp.RequestLimit) http.Handler {
	e := echo.New()
	e.Use(rateecho.Middleware())
	e.GET("/orders/:id", orders{}.Show, rateecho.Limit(limit))
	return e
}
