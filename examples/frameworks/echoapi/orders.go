// Package echoapi limits a handler of echo.
package echoapi

import (
	"net/http"

	"github.com/labstack/echo/v5"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rateecho"
)

//go:generate go tool rategen

// Orders are handlers.
type Orders interface {
	// Show answers with an order.
	//
	//ratelimit:key=#c.Param("id") window=1h max=1 ctx=#c.Request().Context()
	Show(c *echo.Context) error
}

// newHandler returns a server whose handlers are behind their limits.
func newHandler(orders Orders, limiter *runtime.Limiter) http.Handler {
	e := echo.New()
	e.Use(rateecho.Middleware())
	e.GET("/orders/:id", NewRateLimitedOrders(orders, limiter).Show)
	return e
}
