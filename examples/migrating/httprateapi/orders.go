// Package httprateapi has a limit by httprate, and by ratehttp.
package httprateapi

import (
	"net"
	"net/http"
	"time"

	"github.com/go-chi/httprate"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// Before limits a client's requests by httprate, in this process.
func Before(list http.Handler) http.Handler {
	return httprate.LimitBy(5, time.Minute, clientIP)(list)
}

func clientIP(r *http.Request) (string, error) {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	return httprate.CanonicalizeIP(host), err
}

// After limits the same requests for all processes.
func After(list http.Handler, limiter *runtime.Limiter) http.Handler {
	limit := ratehttp.RequestLimit{
		Limiter: limiter,
		Rule:    &runtime.Rule{Name: "orders.list", Window: time.Minute, Max: 5, Algorithm: runtime.SlidingCounter},
	}
	return ratehttp.Middleware()(limit.Wrap(list))
}
