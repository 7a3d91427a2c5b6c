// Package tollboothapi has a limit by tollbooth, and by ratehttp.
package tollboothapi

import (
	"net/http"
	"time"

	"github.com/didip/tollbooth/v7"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// Before limits a client's requests by tollbooth: 5 a minute, and 5 at once.
func Before(list http.Handler) http.Handler {
	limiter := tollbooth.NewLimiter(5.0/60, nil).SetBurst(5)
	limiter.SetIPLookups([]string{"RemoteAddr"})
	return tollbooth.LimitHandler(limiter, list)
}

// After limits the same requests for all processes.
func After(list http.Handler, limiter *runtime.Limiter) http.Handler {
	limit := ratehttp.RequestLimit{
		Limiter: limiter,
		Rule:    &runtime.Rule{Name: "orders.list", Window: time.Minute, Max: 5, Algorithm: runtime.TokenBucket},
	}
	return ratehttp.Middleware()(limit.Wrap(list))
}
