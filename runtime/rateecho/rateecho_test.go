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
func TestOnTheWire(t *testing.T) { wire.CheckAdapter(t, "GET /hidden/:id", serve) }

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
	for _, r := range service.Routes(func(code int) error { return echo.NewHTTPError(code, "internal") }) {
		var limits []echo.MiddlewareFunc
		if r.Path == wire.Login {
			limits = append(limits, rateecho.Limit(service.Login()))
		}
		e.Add(r.Method, r.Path, func(c *echo.Context) error {
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
