// Package ululeapi has a limit by ulule/limiter, and by a directive.
package ululeapi

import (
	"net/http"
	"time"

	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/middleware/stdlib"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

//go:generate go tool rategen

// Before limits a client's requests by ulule/limiter.
func Before(store limiter.Store, orders Orders) http.Handler {
	rate := limiter.Rate{Limit: 5, Period: time.Minute}
	middleware := stdlib.NewMiddleware(limiter.New(store, rate))
	return middleware.Handler(http.HandlerFunc(orders.List))
}

// Orders is limited by its directive.
type Orders interface {
	// List answers with the orders of a client.
	//
	//ratelimit:key=ratehttp.ClientIP(#r.Context()) window=1m max=5 algorithm=fixed-window
	List(w http.ResponseWriter, r *http.Request)
}

// After limits the same requests by the directive.
func After(orders Orders, limiter *runtime.Limiter) http.Handler {
	limited := NewRateLimitedOrders(orders, limiter)
	return ratehttp.Middleware()(http.HandlerFunc(limited.List))
}
