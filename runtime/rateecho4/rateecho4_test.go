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
func TestOnTheWire(t *testing.T) { wire.CheckAdapter(t, "GET /hidden/:id", serve) }

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
	for _, r := range service.Routes(func(code int) error { return echo.NewHTTPError(code, "internal") }) {
		var limits []echo.MiddlewareFunc
		if r.Path == wire.Login {
			limits = append(limits, rateecho4.Limit(service.Login()))
		}
		e.Add(r.Method, r.Path, func(c echo.Context) error {
			return r.Do(wire.Call{
				Context: c.Request().Context(), Param: wire.First(c.Param), Query: wire.First(c.QueryParam), Set: c.Response().Header().Set,
				Send: func(text string) error { return c.String(200, text) },
			})
		}, limits...)
	}
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	return server.URL
}

func TestUnfit(t *testing.T) {
	wire.CheckUnfit(t, func(l ratehttp.RequestLimit) {
		echo.New().GET("/", func(echo.Context) error { return nil }, rateecho4.Limit(l))
	})
}
