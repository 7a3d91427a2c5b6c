// Package fiberapi limits a handler of fiber.
package fiberapi

import (
	"net/http"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/adaptor"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

//go:generate go tool rategen

// Orders are handlers.
type Orders interface {
	// Show answers with an order.
	//
	//ratelimit:key=#c.Params("id") window=1h max=1 ctx=#c.UserContext()
	Show(c *fiber.Ctx) error
}

// onError answers refusals, in the way of net/http, and other errors as fiber does.
func onError(c *fiber.Ctx, err error) error {
	refusal := false
	answer := adaptor.HTTPHandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		refusal = ratehttp.Error(w, r, err)
	})
	if failed := answer(c); failed != nil || refusal {
		return failed
	}
	return fiber.DefaultErrorHandler(c, err)
}

// newApp returns an application whose handlers are behind their limits.
func newApp(orders Orders, limiter *runtime.Limiter) *fiber.App {
	app := fiber.New(fiber.Config{ErrorHandler: onError, DisableStartupMessage: true})
	app.Get("/orders/:id", NewRateLimitedOrders(orders, limiter).Show)
	return app
}
