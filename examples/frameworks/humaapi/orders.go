// Package humaapi limits operations of huma.
package humaapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

//go:generate go tool rategen

// Orders has handlers of huma.
type Orders interface {
	// Show shows an order.
	//
	//ratelimit:key=#in.ID window=1h max=1
	Show(ctx context.Context, in *ShowInput) (*ShowOutput, error)
}

// A ShowInput is what a request for an order has.
type ShowInput struct {
	ID string `path:"id"`
}

// A ShowOutput is an order.
type ShowOutput struct {
	Body struct {
		ID string `json:"id"`
	}
}

// newHandler returns a server of orders.
func newHandler(orders Orders, limiter *runtime.Limiter) http.Handler {
	mux := http.NewServeMux()
	api := humago.New(mux, huma.DefaultConfig("Orders", "1.0.0"))
	huma.Get(api, "/orders/{id}", NewRateLimitedOrders(orders, limiter).Show)
	return ratehttp.Middleware()(mux)
}
