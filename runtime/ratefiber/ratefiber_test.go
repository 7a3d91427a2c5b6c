package ratefiber_test

import (
	"log/slog"
	"net"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/cors"

	"github.com/rategen/rategen/internal/testkit/wire"
	"github.com/rategen/rategen/runtime/ratefiber"
	"github.com/rategen/rategen/runtime/ratehttp"
)

func TestOnTheWire(t *testing.T) { wire.Check(t, serve(t, newApp(wire.NewService(t)))) }

func TestHidden(t *testing.T) {
	service := wire.NewService(t)
	service.CheckHidden(t, serve(t, newApp(service)), serve(t, newApp(service, ratehttp.WithForcedRefusals())), "GET /hidden/:id")
}

// newApp returns an app that answers what package wire asks for.
func newApp(service *wire.Service, opts ...ratehttp.Option) *fiber.App {
	app := fiber.New()
	app.Use(ratefiber.Middleware(opts...), cors.New(cors.Config{
		AllowOrigins: []string{wire.Origin}, ExposeHeaders: []string{"RateLimit", "RateLimit-Policy", "Retry-After"},
	}))
	show := func(c fiber.Ctx) error {
		c.Set("X-Accel-Redirect", "/private/order")
		order, err := service.Show(c.Context(), c.Params("id"))
		if err != nil {
			return err
		}
		return c.SendString(order)
	}
	app.Get("/orders/:id", show)
	app.Get("/hidden/:id", func(c fiber.Ctx) error {
		if show(c) != nil {
			return fiber.NewError(500, "internal")
		}
		return nil
	})
	app.Get("/down", func(c fiber.Ctx) error { return service.Down(c.Context()) })
	app.Get("/client", func(c fiber.Ctx) error { return c.SendString(ratehttp.ClientIP(c.Context())) })
	app.Post("/login", ratefiber.Limit(service.Login()), func(c fiber.Ctx) error {
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
	go func() { served <- app.Listener(listener, fiber.ListenConfig{DisableStartupMessage: true}) }()
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
	wire.CheckUnfit(t, func(l ratehttp.RequestLimit) { ratefiber.Limit(l) })
}

// A handler's own time to come back, and the older fields of a stricter server behind it, stay.
func TestOwnFields(t *testing.T) {
	service := wire.NewService(t)
	app := fiber.New()
	app.Use(ratefiber.Middleware(ratehttp.WithLegacyFields()))
	app.Get("/", func(c fiber.Ctx) error {
		_, _ = service.Show(c.Context(), "1")
		c.Set("Retry-After", "7")
		c.Set("X-RateLimit-Remaining", "0")
		c.Set("X-RateLimit-Reset", "99999999999")
		return c.SendStatus(429)
	})
	resp, err := app.Test(httptest.NewRequest("GET", "/", nil))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if h := resp.Header; h.Get("Retry-After") != "7" || h.Get("X-RateLimit-Reset") != "99999999999" || h.Get("RateLimit") == "" {
		t.Error(h)
	}
}

func TestStreams(t *testing.T) {
	var log strings.Builder
	app := fiber.New(fiber.Config{StreamRequestBody: true, BodyLimit: 1 << 10})
	app.Use(cors.New(cors.Config{AllowOrigins: []string{wire.Origin}, ExposeHeaders: []string{"X-Own"}}),
		ratefiber.Middleware(ratehttp.WithCORS(), ratehttp.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))))
	app.Post("/", ratefiber.Limit(wire.Uploads()), func(c fiber.Ctx) error {
		body, err := wire.Upload(c.Set, c.Request().BodyStream())
		if err != nil {
			return err
		}
		return c.Send(body)
	})
	wire.CheckStream(t, serve(t, app), &log)
}
