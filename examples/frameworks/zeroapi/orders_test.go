package zeroapi

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/rategen/rategen/examples/frameworks/refused"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// serve answers as a handler that goctl writes, whose httpx.ErrorCtx asks the error handler.
func serve(limiter *runtime.Limiter) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		logic := NewRateLimitedShowLogic(&ShowLogic{ctx: r.Context()}, limiter)
		text, err := logic.Show(r.PathValue("id"))
		if err != nil {
			status, body := answer(r.Context(), err)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(body)
			return
		}
		_, _ = w.Write([]byte(text))
	})
	return ratehttp.Middleware()(mux)
}

func TestRefused(t *testing.T) {
	refused.Own(t, serve(refused.Limiter(t)), `{"message":"rate limit exceeded"}`+"\n")
	refused.Unavailable(t, serve(refused.Down(t)))
}
