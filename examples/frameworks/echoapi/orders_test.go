package echoapi

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/labstack/echo/v5"
	"github.com/rategen/rategen/examples/frameworks/refused"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rateecho"
	"github.com/rategen/rategen/runtime/ratehttp"
)

type orders struct{}

func (orders) Show(c *echo.Context) error {
	if c.Param("id") == "missing" {
		return echo.NewHTTPError(http.StatusNotFound, "no such order")
	}
	return c.String(http.StatusOK, "order "+c.Param("id"))
}

func TestRefused(t *testing.T) {
	refused.HTTP(t, newHandler(orders{}, refused.Limiter(t)))
}

// Errors that are no refusals keep the answer of the framework.
func TestOtherErrors(t *testing.T) {
	answer := httptest.NewRecorder()
	newHandler(orders{}, refused.Limiter(t)).ServeHTTP(answer, httptest.NewRequest("GET", "/orders/missing", nil))
	if answer.Code != http.StatusNotFound {
		t.Errorf("status %d, want 404", answer.Code)
	}
}

// Without a line for it echo itself asks a refusal for its status.
func TestStatusCode(t *testing.T) {
	e := echo.New()
	e.GET("/orders/:id", NewRateLimitedOrders(orders{}, refused.Limiter(t)).Show)
	var codes []int
	for range 2 {
		answer := httptest.NewRecorder()
		e.ServeHTTP(answer, httptest.NewRequest("GET", "/orders/1", nil))
		codes = append(codes, answer.Code)
	}
	if codes[0] != http.StatusOK || codes[1] != http.StatusTooManyRequests {
		t.Errorf("statuses %v, want 200 and 429", codes)
	}
}

func TestLimitWithoutDirective(t *testing.T) {
	limit := ratehttp.RequestLimit{
		Limiter: refused.Limiter(t),
		Rule:    &runtime.Rule{Name: "orders", Window: time.Hour, Max: 1},
		Key:     func(r *http.Request) string { return r.URL.Path },
	}
	e := echo.New()
	e.Use(rateecho.Middleware())
	e.GET("/orders/:id", orders{}.Show, rateecho.Limit(limit))
	refused.HTTP(t, e)
}
