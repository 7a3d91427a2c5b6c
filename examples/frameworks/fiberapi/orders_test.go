package fiberapi

import (
	"net"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/rategen/rategen/examples/frameworks/refused"
	"github.com/rategen/rategen/runtime"
)

type orders struct{}

func (orders) Show(c *fiber.Ctx) error {
	if c.Params("id") == "missing" {
		return fiber.ErrNotFound
	}
	return c.SendString("order " + c.Params("id"))
}

func TestRefused(t *testing.T) {
	url := serve(t, refused.Limiter(t))
	refused.At(t, url, refused.WithoutFields)
	refused.Status(t, url+"/orders/missing", fiber.StatusNotFound)
	refused.UnavailableAt(t, serve(t, refused.Down(t)))
}

// serve serves an application, and returns its address.
func serve(t *testing.T, limiter *runtime.Limiter) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	app := newApp(orders{}, limiter)
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
	return "http://" + listener.Addr().String()
}
