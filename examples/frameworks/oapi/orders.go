// Package oapi limits servers of oapi-codegen: a plain one, and a strict one.
package oapi

import (
	"context"
	"fmt"
	"net/http"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

//go:generate go run github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2 -config oapi.yaml orders.yaml
//go:generate go tool rategen

// Orders is the interface that is generated, with a limit.
type Orders interface {
	ServerInterface

	// GetOrder answers with an order.
	//
	//ratelimit:key=#id window=1h max=1
	GetOrder(w http.ResponseWriter, r *http.Request, id string)
}

type plain struct{}

func (plain) GetOrder(w http.ResponseWriter, _ *http.Request, id string) {
	fmt.Fprintf(w, "order %s", id)
}

// NewHandler returns a server whose handlers are behind their limits.
func NewHandler(limiter *runtime.Limiter) http.Handler {
	var orders Orders = plain{}
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

type strict struct{}

func (strict) GetOrder(_ context.Context, request GetOrderRequestObject) (GetOrderResponseObject, error) {
	return GetOrder200TextResponse("order " + request.Id), nil
}

// StrictHandler returns a strict server.
func StrictHandler(limiter *runtime.Limiter) http.Handler {
	var orders StrictOrders = strict{}
	return ratehttp.Middleware()(Handler(NewStrictHandler(NewRateLimitedStrictOrders(orders, limiter), nil)))
}
