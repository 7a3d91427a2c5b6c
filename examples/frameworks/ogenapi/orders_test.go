package ogenapi

import (
	"net/http"
	"testing"

	"github.com/rategen/rategen/examples/frameworks/refused"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// serve answers as the server that ogen generates: an error by NewError, a refusal by the middleware.
func serve(h Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		order, err := h.ShowOrder(r.Context(), ShowOrderParams{ID: r.PathValue("id")})
		if err != nil {
			answer := h.NewError(r.Context(), err)
			http.Error(w, answer.Response.Message, answer.StatusCode)
			return
		}
		_, _ = w.Write([]byte("order " + order.ID))
	})
	return ratehttp.Middleware()(mux)
}

func TestRefused(t *testing.T) {
	limited := func(limiter *runtime.Limiter) http.Handler { return serve(NewRateLimitedOrders(orders{}, limiter)) }
	refused.HTTP(t, limited(refused.Limiter(t)))
	refused.Unavailable(t, limited(refused.Down(t)))
}
