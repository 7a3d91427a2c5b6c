// Package sqlcdb limits a query of sqlc by a directive in query.sql.
package sqlcdb

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

//go:generate go tool rategen

// Handler returns a server of orders, which are read within their limits.
func Handler(queries QueriesInterface, limiter *runtime.Limiter) http.Handler {
	orders := NewRateLimitedQueries(queries, limiter)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
		if err != nil {
			http.NotFound(w, r)
			return
		}
		order, err := orders.GetOrder(r.Context(), id)
		switch {
		case err == nil:
			fmt.Fprint(w, order.Item)
		case ratehttp.Error(w, r, err):
		default:
			http.Error(w, "internal error", http.StatusInternalServerError)
		}
	})
	return ratehttp.Middleware()(mux)
}
