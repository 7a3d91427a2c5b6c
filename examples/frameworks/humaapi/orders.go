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

type orders struct{}

func (orders) Show(_ context.Context, in *ShowInput) (*ShowOutput, error) {
	out := new(ShowOutput)
	out.Body.ID = in.ID
	return out, nil
}

// Handler returns a server of orders. huma answers an error that it does not know with 500, and
// the middleware that with the refusal.
func Handler(limiter *runtime.Limiter) http.Handler {
	mux, orders := http.NewServeMux(), orders{}
	api := humago.New(mux, huma.DefaultConfig("Orders", "1.0.0"))
	huma.Get(api, "/orders/{id}", NewRateLimitedOrders(orders, limiter).Show)
	return ratehttp.Middleware()(mux)
}
