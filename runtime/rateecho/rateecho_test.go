package rateecho_test

import (
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"

	"github.com/rategen/rategen/internal/testkit/wire"
	"github.com/rategen/rategen/runtime/rateecho"
	"github.com/rategen/rategen/runtime/ratehttp"
)

func TestOnTheWire(t *testing.T) { wire.Check(t, serve(t, wire.NewService(t))) }

func TestHidden(t *testing.T) {
	service := wire.NewService(t)
	service.CheckHidden(t, serve(t, service), serve(t, service, ratehttp.WithForcedRefusals()), "GET /hidden/:id")
}

// serve serves what package wire asks for.
func serve(t *testing.T, service *wire.Service, opts ...ratehttp.Option) (url string) {
	e := echo.New()
	e.Use(rateecho.Middleware(opts...), middleware.CORSWithConfig(middleware.CORSConfig{
		AllowOrigins: []string{wire.Origin}, ExposeHeaders: []string{"RateLimit", "RateLimit-Policy", "Retry-After"},
	}))
	show := func(c *echo.Context) error {
		c.Response().Header().Set("X-Accel-Redirect", "/private/order")
		order, err := service.Show(c.Request().Context(), c.Param("id"))
		if err != nil {
			return err
		}
		return c.String(200, order)
	}
	e.GET("/orders/:id", show)
	e.GET("/hidden/:id", func(c *echo.Context) error {
		if show(c) != nil {
			return echo.NewHTTPError(500, "internal")
		}
		return nil
	})
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

func TestUnfit(t *testing.T) {
	wire.CheckUnfit(t, func(l ratehttp.RequestLimit) {
		echo.New().GET("/", func(*echo.Context) error { return nil }, rateecho.Limit(l))
	})
}
