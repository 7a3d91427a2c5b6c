// Package orders has a limit by ulule/limiter, by httprate, by tollbooth, by a directive, and by
// ratehttp.
package orders

import (
	"net"
	"net/http"
	"time"

	"github.com/didip/tollbooth/v7"
	"github.com/go-chi/httprate"
	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/middleware/stdlib"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

//go:generate go tool rategen

// Orders is limited by its directive.
type Orders interface {
	// List answers with the orders of a client.
	//
	//ratelimit:key=ratehttp.ClientIP(#r.Context()) window=1m max=5 algorithm=fixed-window
	List(w http.ResponseWriter, r *http.Request)
}

// ByUlule limits a client's requests by ulule/limiter.
func ByUlule(store limiter.Store, orders Orders) http.Handler {
	rate := limiter.Rate{Limit: 5, Period: time.Minute}
	middleware := stdlib.NewMiddleware(limiter.New(store, rate))
	return middleware.Handler(http.HandlerFunc(orders.List))
}

// ByDirective limits the same requests for all processes.
func ByDirective(orders Orders, limiter *runtime.Limiter) http.Handler {
	limited := NewRateLimitedOrders(orders, limiter)
	return ratehttp.Middleware()(http.HandlerFunc(limited.List))
}

// ByHTTPRate limits them by httprate, in this process.
func ByHTTPRate(list http.Handler) http.Handler {
	return httprate.LimitBy(5, time.Minute, clientIP)(list)
}

func clientIP(r *http.Request) (string, error) {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	return httprate.CanonicalizeIP(host), err
}

// ByTollbooth limits them by tollbooth: 5 a minute, and 5 at once.
func ByTollbooth(list http.Handler) http.Handler {
	limiter := tollbooth.NewLimiter(5.0/60, nil).SetBurst(5)
	limiter.SetIPLookups([]string{"RemoteAddr"})
	return tollbooth.LimitHandler(limiter, list)
}

// WithoutDirective limits them for all processes.
func WithoutDirective(list http.Handler, limiter *runtime.Limiter) http.Handler {
	limit := ratehttp.RequestLimit{
		Limiter: limiter,
		Rule:    &runtime.Rule{Name: "orders.list", Window: time.Minute, Max: 5, Algorithm: runtime.SlidingCounter},
	}
	return ratehttp.Middleware()(limit.Wrap(list))
}
