// Package fiberapi limits a handler of fiber.
package fiberapi

import (
	"github.com/gofiber/fiber/v2"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratefiber2"
)

//go:generate go tool rategen

// Orders are handlers.
type Orders interface {
	// Show answers with an order.
	//
	//ratelimit:key=#c.Params("id") window=1h max=1 ctx=#c.UserContext()
	Show(c *fiber.Ctx) error
}

// newApp returns an application whose handlers are behind their limits.
func newApp(orders Orders, limiter *runtime.Limiter) *fiber.App {
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	app.Use(ratefiber2.Middleware())
	app.Get("/orders/:id", NewRateLimitedOrders(orders, limiter).Show)
	return app
}
