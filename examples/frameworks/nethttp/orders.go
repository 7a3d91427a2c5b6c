// Package nethttp limits a handler of the standard library.
package nethttp

import (
	"net/http"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

//go:generate go tool rategen

// Orders are handlers. Those of the standard library need no more than a limit.
type Orders interface {
	// Show answers with an order.
	//
	//ratelimit:key=#r.PathValue("id") window=1h max=1
	Show(w http.ResponseWriter, r *http.Request)
}

// newHandler returns a server whose handlers are behind their limits.
func newHandler(orders Orders, limiter *runtime.Limiter) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /orders/{id}", NewRateLimitedOrders(orders, limiter).Show)
	return ratehttp.Middleware()(mux)
}
