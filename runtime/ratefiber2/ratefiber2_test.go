package ratefiber2_test

import (
	"errors"
	"io"
	"log/slog"
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
	wire.CheckAdapter(t, "GET /hidden/:id", func(t *testing.T, s *wire.Service, outside bool, opts ...ratehttp.Option) string {
		return serve(t, newApp(t, s, outside, opts...))
	})
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
	for _, r := range service.Routes(func(code int) error { return fiber.NewError(code, "internal") }) {
		do := func(c *fiber.Ctx) error {
			return r.Do(wire.Call{Context: c.UserContext(), Param: c.Params, Query: c.Query, Set: c.Set, Send: c.SendString})
		}
		switch r.Path {
		case wire.Login:
			app.Post(r.Path, ratefiber2.Limit(service.Login()), do)
		case "/orders/:id":
			app.Get(r.Path, timeout.NewWithContext(do, time.Minute))
		default:
			app.Get(r.Path, do)
		}
	}
	return app
}

// serve serves on a port of this machine.
func serve(t *testing.T, app *fiber.App) (url string) {
	return wire.Serve(t, app.Listener, app.Shutdown)
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
