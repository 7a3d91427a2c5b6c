// Package chiapi limits handlers of chi.
package chiapi

import (
	"fmt"
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

type orders struct{}

func (orders) Show(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, "order %s", chi.URLParam(r, "id"))
}

// Handler returns a server whose handlers are behind their limits.
func Handler(limiter *runtime.Limiter) http.Handler {
	router, orders := chi.NewRouter(), orders{}
	router.Use(ratehttp.Middleware())
	router.Get("/orders/{id}", NewRateLimitedOrders(orders, limiter).Show)
	return router
}

// WithLimit returns one whose handler is behind a limit without a directive.
func WithLimit(limit ratehttp.RequestLimit) http.Handler {
	router := chi.NewRouter()
	router.Use(ratehttp.Middleware())
	router.With(limit.Wrap).Get("/orders/{id}", orders{}.Show)
	return router
}
