package echo4api

import (
	"net/http"
	"testing"

	"github.com/labstack/echo/v4"
	"github.com/rategen/rategen/internal/frameworks/refused"
)

type orders struct{}

func (orders) Show(c echo.Context) error {
	return c.String(http.StatusOK, "order "+c.Param("id"))
}

func TestRefused(t *testing.T) {
	refused.HTTP(t, newHandler(orders{}, refused.Limiter(t)), refused.WithFields)
}
