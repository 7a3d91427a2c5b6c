package echo4api

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v4"
	"github.com/rategen/rategen/examples/frameworks/refused"
)

type orders struct{}

func (orders) Show(c echo.Context) error {
	return c.String(http.StatusOK, "order "+c.Param("id"))
}

func TestRefused(t *testing.T) {
	refused.HTTP(t, newHandler(orders{}, refused.Limiter(t)))
}

// Without the middleware echo v4 asks no error for its status.
func TestStatusCode(t *testing.T) {
	e := echo.New()
	e.GET("/orders/:id", NewRateLimitedOrders(orders{}, refused.Limiter(t)).Show)
	var codes []int
	for range 2 {
		answer := httptest.NewRecorder()
		e.ServeHTTP(answer, httptest.NewRequest("GET", "/orders/1", nil))
		codes = append(codes, answer.Code)
	}
	if codes[0] != http.StatusOK || codes[1] != http.StatusInternalServerError {
		t.Errorf("statuses %v, want 200 and 500", codes)
	}
}
