package rateecho4_test

import (
	"errors"
	"io"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"github.com/labstack/gommon/log"

	"github.com/rategen/rategen/internal/testkit/wire"
	"github.com/rategen/rategen/runtime/rateecho4"
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
	e.Logger.SetLevel(log.OFF)
	e.HTTPErrorHandler = func(err error, c echo.Context) {
		if c.Response().Committed {
			return
		}
		code, known := 500, new(echo.HTTPError)
		if errors.As(err, &known) {
			code = known.Code
		}
		_ = c.JSON(code, map[string]string{"error": "internal"})
	}
	all := []echo.MiddlewareFunc{
		middleware.LoggerWithConfig(middleware.LoggerConfig{Output: io.Discard}),
		middleware.RequestLoggerWithConfig(middleware.RequestLoggerConfig{
			HandleError: true, LogStatus: true, LogError: true,
			LogValuesFunc: func(c echo.Context, v middleware.RequestLoggerValues) error {
				if c.Path() == "/lost/:id" && v.Status != 200 && v.Status != c.Response().Status {
					t.Errorf("outside %t: the log has status %d, the client got %d", outside, v.Status, c.Response().Status)
				}
				return nil
			},
		}),
		middleware.BodyDump(func(echo.Context, []byte, []byte) {}),
		middleware.Recover(), middleware.Gzip(), middleware.Timeout(), middleware.ContextTimeout(time.Minute),
		middleware.CORSWithConfig(middleware.CORSConfig{
			AllowOrigins: []string{wire.Origin}, ExposeHeaders: []string{"RateLimit", "RateLimit-Policy", "Retry-After"},
		}),
	}
	adapter := rateecho4.Middleware(opts...)
	if outside {
		e.Use(append([]echo.MiddlewareFunc{adapter}, all...)...)
	} else {
		e.Use(append(all, adapter)...)
	}
	show := func(c echo.Context) error {
		c.Response().Header().Set("X-Accel-Redirect", "/private/order")
		order, err := service.Show(c.Request().Context(), c.Param("id"))
		if err != nil {
			return err
		}
		return c.String(200, order)
	}
	mapped := func(form func(error) error) echo.HandlerFunc {
		return func(c echo.Context) error {
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
	e.GET("/down", func(c echo.Context) error { return service.Down(c.Request().Context()) })
	e.GET("/client", func(c echo.Context) error { return c.String(200, ratehttp.ClientIP(c.Request().Context())) })
	e.POST("/login", func(c echo.Context) error {
		if c.QueryParam("password") != "right" {
			return echo.NewHTTPError(401, "wrong password")
		}
		return c.NoContent(200)
	}, rateecho4.Limit(service.Login()))
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	return server.URL
}

func TestUnfit(t *testing.T) {
	wire.CheckUnfit(t, func(l ratehttp.RequestLimit) {
		echo.New().GET("/", func(echo.Context) error { return nil }, rateecho4.Limit(l))
	})
}
