package ratefiber2_test

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/compress"
	"github.com/gofiber/fiber/v2/middleware/cors"
	"github.com/gofiber/fiber/v2/middleware/logger"
	"github.com/gofiber/fiber/v2/middleware/recover"
	"github.com/gofiber/fiber/v2/middleware/timeout"

	"github.com/rategen/rategen/internal/testkit/wire"
	"github.com/rategen/rategen/runtime/ratefiber2"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// fiber's own middleware, on either side of the adapter.
func TestOnTheWire(t *testing.T) {
	for _, outside := range []bool{false, true} {
		wire.Check(t, serve(t, newApp(t, wire.NewService(t), outside)))
		service := wire.NewService(t)
		service.CheckHidden(t, func(opts ...ratehttp.Option) string {
			return serve(t, newApp(t, service, outside, opts...))
		}, "GET /hidden/:id")
	}
}

// newApp returns an app that answers what package wire asks for, with the adapter outside of fiber's
// middleware or inside.
func newApp(t *testing.T, service *wire.Service, outside bool, opts ...ratehttp.Option) *fiber.App {
	app := fiber.New(fiber.Config{DisableStartupMessage: true, ErrorHandler: func(c *fiber.Ctx, err error) error {
		code, known := 500, new(fiber.Error)
		if errors.As(err, &known) {
			code = known.Code
		}
		return c.Status(code).JSON(map[string]string{"error": "internal"})
	}})
	logged := func(c *fiber.Ctx, _ []byte) {
		if status := c.Response().StatusCode(); !outside && len(opts) == 0 && c.Route().Path == "/lost/:id" && status == 500 {
			t.Errorf("the log has status %d", status)
		}
	}
	adapter := ratefiber2.Middleware(opts...)
	if outside {
		app.Use(adapter)
	}
	app.Use(logger.New(logger.Config{Output: io.Discard, Done: logged}), recover.New(), compress.New(), cors.New(cors.Config{
		AllowOrigins: wire.Origin, ExposeHeaders: "RateLimit, RateLimit-Policy, Retry-After",
	}))
	if !outside {
		app.Use(adapter)
	}
	show := func(c *fiber.Ctx) error {
		c.Set("X-Accel-Redirect", "/private/order")
		order, err := service.Show(c.UserContext(), c.Params("id"))
		if err != nil {
			return err
		}
		return c.SendString(order)
	}
	mapped := func(form func(error) error) fiber.Handler {
		return func(c *fiber.Ctx) error {
			if err := show(c); err != nil {
				return form(err)
			}
			return nil
		}
	}
	app.Get("/orders/:id", timeout.NewWithContext(show, time.Minute))
	app.Get("/hidden/:id", mapped(func(error) error { return fiber.NewError(500, "internal") }))
	app.Get("/lost/:id", mapped(func(err error) error { return errors.New(err.Error()) }))
	app.Get("/meant/:id", mapped(func(error) error { return fiber.ErrNotFound }))
	app.Get("/down", func(c *fiber.Ctx) error { return service.Down(c.UserContext()) })
	app.Get("/client", func(c *fiber.Ctx) error { return c.SendString(ratehttp.ClientIP(c.UserContext())) })
	app.Post("/login", ratefiber2.Limit(service.Login()), func(c *fiber.Ctx) error {
		if c.Query("password") != "right" {
			return fiber.ErrUnauthorized
		}
		return nil
	})
	return app
}

// serve serves on a port of this machine.
func serve(t *testing.T, app *fiber.App) (url string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
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

func TestUnfit(t *testing.T) {
	wire.CheckUnfit(t, func(l ratehttp.RequestLimit) { ratefiber2.Limit(l) })
}

func TestStreams(t *testing.T) {
	var log strings.Builder
	app := fiber.New(fiber.Config{StreamRequestBody: true, BodyLimit: 1 << 10})
	app.Use(cors.New(cors.Config{AllowOrigins: wire.Origin, ExposeHeaders: "X-Own"}),
		ratefiber2.Middleware(ratehttp.WithCORS(), ratehttp.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))))
	app.Post("/", ratefiber2.Limit(wire.Uploads()), func(c *fiber.Ctx) error {
		body, err := wire.Upload(c.Set, c.Context().RequestBodyStream())
		if err != nil {
			return err
		}
		return c.Send(body)
	})
	wire.CheckStream(t, serve(t, app), &log)
}
