package ginapi

import (
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/rategen/rategen/examples/frameworks/refused"
)

type orders struct{}

func (orders) Show(c *gin.Context) { c.String(http.StatusOK, "order %s", c.Param("id")) }

func TestRefused(t *testing.T) {
	gin.SetMode(gin.TestMode)
	refused.HTTP(t, newHandler(orders{}, refused.Limiter(t)))
}
