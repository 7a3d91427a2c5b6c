// Package nethttp limits a handler of the standard library.
package nethttp

import (
	"fmt"
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

type orders struct{}

func (orders) Show(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, "order %s", r.PathValue("id"))
}

// Handler returns a server whose handlers are behind their limits.
func Handler(limiter *runtime.Limiter) http.Handler {
	mux, orders := http.NewServeMux(), orders{}
	mux.HandleFunc("GET /orders/{id}", NewRateLimitedOrders(orders, limiter).Show)
	return ratehttp.Middleware()(mux)
}

// WithLimit returns one whose handler is behind a limit without a directive.
func WithLimit(limit ratehttp.RequestLimit) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /orders/{id}", limit.Wrap(http.HandlerFunc(orders{}.Show)))
	return ratehttp.Middleware()(mux)
}
