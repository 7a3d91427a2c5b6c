// Package oapiplain limits a plain server of oapi-codegen.
package oapiplain

import (
	"net/http"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

//go:generate go tool rategen

// Orders is the generated interface, with a limit.
type Orders interface {
	ServerInterface

	// GetOrder answers with an order.
	//
	//ratelimit:key=#id window=1h max=1
	GetOrder(w http.ResponseWriter, r *http.Request, id string)
}

// newHandler returns a server whose handlers are behind their limits.
func newHandler(orders Orders, limiter *runtime.Limiter) http.Handler {
	return ratehttp.Middleware()(Handler(NewRateLimitedOrders(orders, limiter)))
}
