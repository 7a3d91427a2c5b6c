// Package oapi limits servers of oapi-codegen: a plain one, and a strict one.
package oapi

import (
	"context"
	"net/http"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

//go:generate go tool rategen

// Orders is the interface that is generated, with a limit.
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

// StrictOrders is the one for strict servers.
type StrictOrders interface {
	StrictServerInterface

	// GetOrder answers with an order.
	//
	//ratelimit:key=#request.Id window=1h max=1
	GetOrder(ctx context.Context, request GetOrderRequestObject) (GetOrderResponseObject, error)
}

// newStrictHandler returns a strict server.
func newStrictHandler(orders StrictOrders, limiter *runtime.Limiter) http.Handler {
	return ratehttp.Middleware()(Handler(NewStrictHandler(NewRateLimitedStrictOrders(orders, limiter), nil)))
}
