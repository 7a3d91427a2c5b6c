// Package oapistrict limits a strict server of oapi-codegen.
package oapistrict

import (
	"context"
	"net/http"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

//go:generate go tool rategen

// Orders is the generated interface, with a limit.
type Orders interface {
	StrictServerInterface

	// GetOrder answers with an order.
	//
	//ratelimit:key=#request.Id window=1h max=1
	GetOrder(ctx context.Context, request GetOrderRequestObject) (GetOrderResponseObject, error)
}

// newHandler returns a server whose handlers are behind their limits.
func newHandler(orders Orders, limiter *runtime.Limiter) http.Handler {
	server := NewStrictHandlerWithOptions(NewRateLimitedOrders(orders, limiter), nil, StrictHTTPServerOptions{
		ResponseErrorHandlerFunc: func(w http.ResponseWriter, r *http.Request, err error) {
			if !ratehttp.Error(w, r, err) {
				http.Error(w, "internal error", http.StatusInternalServerError)
			}
		},
	})
	return ratehttp.Middleware()(Handler(server))
}
