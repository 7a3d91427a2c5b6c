package rateecho_test

import (
	"errors"
	"log/slog"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"

	"github.com/rategen/rategen/internal/testkit/wire"
	"github.com/rategen/rategen/runtime/rateecho"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// echo's own middleware, on either side of the adapter.
func TestOnTheWire(t *testing.T) {
	for _, outside := range []bool{false, true} {
		wire.Check(t, serve(t, wire.NewService(t), outside))
		service := wire.NewService(t)
		service.CheckHidden(t, func(opts ...ratehttp.Option) string { return serve(t, service, outside, opts...) }, "GET /hidden/:id")
	}
}

// serve serves what package wire asks for, with the adapter outside of echo's middleware or inside.
func serve(t *testing.T, service *wire.Service, outside bool, opts ...ratehttp.Option) (url string) {
	e := echo.New()
	e.Logger = slog.New(slog.DiscardHandler)
	e.HTTPErrorHandler = func(c *echo.Context, err error) {
		if r, _ := echo.UnwrapResponse(c.Response()); r.Committed {
			return
		}
		code, known := 500, echo.HTTPStatusCoder(nil)
		if errors.As(err, &known) && known.StatusCode() < 429 {
			code = known.StatusCode()
		}
		_ = c.JSON(code, map[string]string{"error": "internal"})
	}
	all := []echo.MiddlewareFunc{
		middleware.RequestLoggerWithConfig(middleware.RequestLoggerConfig{
			HandleError: true, LogStatus: true,
			LogValuesFunc: func(c *echo.Context, v middleware.RequestLoggerValues) error {
				if c.Path() == "/lost/:id" && v.Status != 200 && v.Status != statusOf(c) {
					t.Errorf("outside %t: the log has status %d, the client got %d", outside, v.Status, statusOf(c))
				}
				return nil
			},
		}),
		middleware.BodyDump(func(*echo.Context, []byte, []byte, error) {}),
		middleware.Recover(), middleware.Gzip(), middleware.ContextTimeout(time.Minute),
		middleware.CORSWithConfig(middleware.CORSConfig{
			AllowOrigins: []string{wire.Origin}, ExposeHeaders: []string{"RateLimit", "RateLimit-Policy", "Retry-After"},
		}),
	}
	adapter := rateecho.Middleware(opts...)
	if outside {
		e.Use(append([]echo.MiddlewareFunc{adapter}, all...)...)
	} else {
		e.Use(append(all, adapter)...)
	}
	show := func(c *echo.Context) error {
		c.Response().Header().Set("X-Accel-Redirect", "/private/order")
		order, err := service.Show(c.Request().Context(), c.Param("id"))
		if err != nil {
			return err
		}
		return c.String(200, order)
	}
	mapped := func(form func(error) error) echo.HandlerFunc {
		return func(c *echo.Context) error {
			if err := show(c); err != nil {
				return form(err)
			}
			return nil
		}
	}
	e.GET("/orders/:id", show)
	e.GET("/hidden/:id", mapped(func(error) error { return echo.NewHTTPError(500, "internal") }))
	e.GET("/lost/:id", mapped(func(err error) error { return errors.New(err.Error()) }))
	e.GET("/meant/:id", mapped(func(error) error { return echo.ErrNotFound }))
	e.GET("/down", func(c *echo.Context) error { return service.Down(c.Request().Context()) })
	e.GET("/client", func(c *echo.Context) error { return c.String(200, ratehttp.ClientIP(c.Request().Context())) })
	e.POST("/login", func(c *echo.Context) error {
		if c.QueryParam("password") != "right" {
			return echo.NewHTTPError(401, "wrong password")
		}
		return c.NoContent(200)
	}, rateecho.Limit(service.Login()))
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	return server.URL
}

func statusOf(c *echo.Context) int {
	r, err := echo.UnwrapResponse(c.Response())
	if err != nil {
		return 0
	}
	return r.Status
}

func TestUnfit(t *testing.T) {
	wire.CheckUnfit(t, func(l ratehttp.RequestLimit) {
		echo.New().GET("/", func(*echo.Context) error { return nil }, rateecho.Limit(l))
	})
}
