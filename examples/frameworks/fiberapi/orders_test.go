package fiberapi

import (
	"net"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/rategen/rategen/examples/frameworks/refused"
)

type orders struct{}

func (orders) Show(c *fiber.Ctx) error {
	if c.Params("id") == "missing" {
		return fiber.ErrNotFound
	}
	return c.SendString("order " + c.Params("id"))
}

func TestRefused(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	app := newApp(orders{}, refused.Limiter(t))
	served := make(chan error, 1)
	go func() { served <- app.Listener(listener) }()
	t.Cleanup(func() {
		if err := app.Shutdown(); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	url := "http://" + listener.Addr().String()
	refused.At(t, url)
	refused.Status(t, url+"/orders/missing", fiber.StatusNotFound)
}
