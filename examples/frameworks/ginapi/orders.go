// Package ginapi limits a handler of gin.
package ginapi

import (
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rategin"
)

//go:generate go tool rategen

// Orders are handlers.
type Orders interface {
	// Show answers with an order.
	//
	//ratelimit:key=#c.Param("id") window=1h max=1 ctx=#c.Request.Context() deny=rategin.Deny(#c,#err)
	Show(c *gin.Context)
}

type orders struct{}

func (orders) Show(c *gin.Context) { c.String(http.StatusOK, "order %s", c.Param("id")) }

// Handler returns a server whose handlers are behind their limits.
func Handler(limiter *runtime.Limiter) http.Handler {
	gin.SetMode(gin.TestMode)
	engine, orders := gin.New(), orders{}
	engine.Use(rategin.Middleware())
	engine.GET("/orders/:id", NewRateLimitedOrders(orders, limiter).Show)
	return engine
}
