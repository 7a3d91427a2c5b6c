// Package gokitapi limits a service as go-kit's tutorial has them: its methods have no context.
package gokitapi

import (
	"context"
	"fmt"
	"net/http"

	kit "github.com/go-kit/kit/transport/http"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

//go:generate go tool rategen

// Orders is the service as it was.
type Orders interface {
	Show(id string) (string, error)
}

// RequestOrders has the methods of Orders with a context, by which the limits know the request.
type RequestOrders interface {
	// Show returns an order.
	//
	//ratelimit:key=#id window=1h max=1
	Show(ctx context.Context, id string) (string, error)
}

// withContext is an Orders whose methods take a context, and do not need it.
type withContext struct{ orders Orders }

func (c withContext) Show(_ context.Context, id string) (string, error) { return c.orders.Show(id) }

// BareOrders has the limits on methods without a context: Middleware does not learn of them.
type BareOrders interface {
	// Show returns an order.
	//
	//ratelimit:key=#id window=1h max=1
	Show(id string) (string, error)
}

type plain struct{}

func (plain) Show(id string) (string, error) { return "order " + id, nil }

// Handler returns a server whose endpoints are behind their limits.
func Handler(limiter *runtime.Limiter) http.Handler {
	var plain Orders = plain{}
	orders := NewRateLimitedRequestOrders(withContext{plain}, limiter)
	show := func(ctx context.Context, id any) (any, error) { return orders.Show(ctx, id.(string)) }
	return serve(show, kit.ServerErrorEncoder(encodeError))
}

// Bare returns one whose limits know no request.
func Bare(limiter *runtime.Limiter, options ...kit.ServerOption) http.Handler {
	orders := NewRateLimitedBareOrders(plain{}, limiter)
	return serve(func(_ context.Context, id any) (any, error) { return orders.Show(id.(string)) }, options...)
}

// Encoding returns one with the encoder of errors that is shown.
func Encoding(limiter *runtime.Limiter) http.Handler {
	return Bare(limiter, kit.ServerErrorEncoder(encodeError))
}

// serve returns a server with one endpoint.
func serve(show func(ctx context.Context, id any) (any, error), options ...kit.ServerOption) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /orders/{id}", kit.NewServer(show, decode, encode, options...))
	return ratehttp.Middleware()(mux)
}

// encodeError answers refusals with Retry-After, and as the client prefers.
func encodeError(ctx context.Context, err error, w http.ResponseWriter) {
	if !ratehttp.Error(w, new(http.Request).WithContext(ctx), err) {
		kit.DefaultErrorEncoder(ctx, err, w)
	}
}

func decode(_ context.Context, r *http.Request) (any, error) { return r.PathValue("id"), nil }

func encode(_ context.Context, w http.ResponseWriter, answer any) error {
	_, err := fmt.Fprint(w, answer)
	return err
}
