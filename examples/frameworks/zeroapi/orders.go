// Package zeroapi limits the logic of go-zero. It has the shape of what goctl writes: go-zero takes
// long to compile.
package zeroapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

//go:generate go tool rategen

// A ShowLogic is made for each request.
type ShowLogic struct {
	ctx context.Context
}

// Show returns an order.
//
//ratelimit:key=#id window=1h max=1 ctx=#l.ctx
func (l *ShowLogic) Show(id string) (string, error) { return "order " + id, nil }

// answer is for httpx.SetErrorHandlerCtx.
func answer(_ context.Context, err error) (int, any) {
	var status interface{ StatusCode() int }
	if errors.As(err, &status) {
		return status.StatusCode(), map[string]string{"message": err.Error()}
	}
	return http.StatusInternalServerError, map[string]string{"message": "internal error"}
}

// Handler answers as a handler that goctl writes, whose httpx.ErrorCtx asks the error handler.
func Handler(limiter *runtime.Limiter) http.Handler {
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
