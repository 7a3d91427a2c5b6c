// Package fiberapi limits a handler of fiber.
package fiberapi

import (
	"net/http"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/adaptor"

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

type orders struct{}

func (orders) Show(c *fiber.Ctx) error {
	if c.Params("id") == "missing" {
		return fiber.ErrNotFound
	}
	return c.SendString("order " + c.Params("id"))
}

// Handler returns a server whose handlers are behind their limits.
func Handler(limiter *runtime.Limiter) http.Handler {
	app, orders := fiber.New(), orders{}
	app.Use(ratefiber2.Middleware())
	app.Get("/orders/:id", NewRateLimitedOrders(orders, limiter).Show)
	return adaptor.FiberApp(app)
}
