package chiapi

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/rategen/rategen/examples/frameworks/refused"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

type orders struct{}

func (orders) Show(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, "order %s", chi.URLParam(r, "id"))
}

func TestRefused(t *testing.T) {
	refused.HTTP(t, newHandler(orders{}, refused.Limiter(t)))
	refused.Unavailable(t, newHandler(orders{}, refused.Down(t)))
}

func TestLimitWithoutDirective(t *testing.T) {
	limit := ratehttp.RequestLimit{
		Limiter: refused.Limiter(t),
		Rule:    &runtime.Rule{Name: "orders", Window: time.Hour, Max: 1},
		Key:     func(r *http.Request) string { return r.URL.Path },
	}
	router := chi.NewRouter()
	router.Use(ratehttp.Middleware())
	router.With(limit.Wrap).Get("/orders/{id}", orders{}.Show)
	refused.HTTP(t, router)
}
