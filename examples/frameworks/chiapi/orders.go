// Package chiapi limits handlers of chi.
package chiapi

import (
	"net/http"

	"github.com/go-chi/chi/v5"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

//go:generate go tool rategen

// Orders are handlers.
type Orders interface {
	// Show answers with an order.
	//
	//ratelimit:key=chi.URLParam(#r,"id") window=1h max=1
	Show(w http.ResponseWriter, r *http.Request)
}

// newHandler returns a server whose handlers are behind their limits.
func newHandler(orders Orders, limiter *runtime.Limiter) http.Handler {
	router := chi.NewRouter()
	router.Use(ratehttp.Middleware())
	router.Get("/orders/{id}", NewRateLimitedOrders(orders, limiter).Show)
	return router
}
