package ratefiber_test

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/compress"
	"github.com/gofiber/fiber/v3/middleware/cors"
	"github.com/gofiber/fiber/v3/middleware/logger"
	"github.com/gofiber/fiber/v3/middleware/recover"
	"github.com/gofiber/fiber/v3/middleware/timeout"

	"github.com/rategen/rategen/internal/testkit/wire"
	"github.com/rategen/rategen/runtime/ratefiber"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// fiber's own middleware, on either side of the adapter.
func TestOnTheWire(t *testing.T) {
	wire.CheckAdapter(t, "GET /hidden/:id", func(t *testing.T, s *wire.Service, outside bool, opts ...ratehttp.Option) string {
		return serve(t, newApp(t, s, outside, opts...))
	})
}

// newApp returns an app that answers what package wire asks for, with the adapter outside of fiber's
// middleware or inside.
func newApp(t *testing.T, service *wire.Service, outside bool, opts ...ratehttp.Option) *fiber.App {
	app := fiber.New(fiber.Config{ErrorHandler: func(c fiber.Ctx, err error) error {
		code, known := 500, new(fiber.Error)
		if errors.As(err, &known) {
			code = known.Code
		}
		return c.Status(code).JSON(map[string]string{"error": "internal"})
	}})
	logged := func(c fiber.Ctx, _ []byte) {
		if status := c.Response().StatusCode(); !outside && len(opts) == 0 && c.Route().Path == "/lost/:id" && status == 500 {
			t.Errorf("the log has status %d", status)
		}
	}
	adapter := ratefiber.Middleware(opts...)
	if outside {
		app.Use(adapter)
	}
	app.Use(logger.New(logger.Config{Stream: io.Discard, Done: logged}), recover.New(), compress.New(), cors.New(cors.Config{
		AllowOrigins: []string{wire.Origin}, ExposeHeaders: []string{"RateLimit", "RateLimit-Policy", "Retry-After"},
	}))
	if !outside {
		app.Use(adapter)
	}
	for _, r := range service.Routes(func(code int) error { return fiber.NewError(code, "internal") }) {
		do := func(c fiber.Ctx) error {
			return r.Do(wire.Call{Context: c.Context(), Param: c.Params, Query: c.Query, Set: c.Set, Send: c.SendString})
		}
		switch r.Path {
		case wire.Login:
			app.Post(r.Path, ratefiber.Limit(service.Login()), do)
		case "/orders/:id":
			app.Get(r.Path, timeout.New(do, timeout.Config{Timeout: time.Minute}))
		default:
			app.Get(r.Path, do)
		}
	}
	return app
}

// serve serves on a port of this machine.
func serve(t *testing.T, app *fiber.App) (url string) {
	return wire.Serve(t, func(l net.Listener) error { return app.Listener(l, fiber.ListenConfig{DisableStartupMessage: true}) }, app.Shutdown)
}

func TestUnfit(t *testing.T) {
	wire.CheckUnfit(t, func(l ratehttp.RequestLimit) { ratefiber.Limit(l) })
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
