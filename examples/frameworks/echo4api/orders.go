// Package echo4api limits a handler of echo v4.
package echo4api

import (
	"net/http"

	"github.com/labstack/echo/v4"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rateecho4"
)

//go:generate go tool rategen

// Orders are handlers.
type Orders interface {
	// Show answers with an order.
	//
	//ratelimit:key=#c.Param("id") window=1h max=1 ctx=#c.Request().Context()
	Show(c echo.Context) error
}

type orders struct{}

func (orders) Show(c echo.Context) error {
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
	e.Use(rateecho4.Middleware())
	return e
}
