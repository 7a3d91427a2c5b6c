package ratehttp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// An orderService is a service behind a generated wrapper.
type orderService interface {
	Place(ctx context.Context, item string) error
}

func newHandler(orders orderService) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) {
		if err := orders.Place(r.Context(), r.FormValue("item")); err != nil {
			writeError(w, http.StatusInternalServerError, "internal error")
			return
		}
		w.WriteHeader(http.StatusCreated)
	})
	return ratehttp.Middleware(ratehttp.WithAnswer(refuse))(mux)
}

// refuse answers a refused request.
func refuse(w http.ResponseWriter, _ *http.Request, a ratehttp.Answer) {
	writeError(w, a.Status, a.Detail)
}

// writeError writes an error as all clients of the service know it.
func writeError(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": text})
}

// A limitedService is an orderService that admits one order.
type limitedService struct{ limiter *runtime.Limiter }

func (s limitedService) Place(ctx context.Context, item string) error {
	rule := &runtime.Rule{Name: "shop.Orders.Place", Window: time.Hour, Max: 1, Message: "too many orders, please wait"}
	if _, err := s.limiter.Take(ctx, rule.Limit(nil)); err != nil {
		return fmt.Errorf("place %q: %w", item, err)
	}
	return nil
}

// The server of the documentation is this one, and its clients get what the page says.
func TestDocumentedServer(t *testing.T) {
	page, err := os.ReadFile("../../docs/http.md")
	limittest.OK(t, err)
	source, err := os.ReadFile("server_test.go")
	limittest.OK(t, err)
	_, server, _ := strings.Cut(string(source), "\n)\n\n")
	server, _, _ = strings.Cut(server, "\n// A limitedService")
	if !strings.Contains(string(page), server) {
		t.Errorf("docs/http.md does not have:\n%s", server)
	}
	handler := newHandler(limitedService{newLimiter()})
	for _, want := range []struct {
		status          int
		body, wait, typ string
	}{{201, "", "", ""}, {429, `{"error":"too many orders, please wait"}`, "3600", "application/json"}} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/orders", nil))
		if h := w.Header(); w.Code != want.status || strings.TrimSpace(w.Body.String()) != want.body || h.Get("Retry-After") != want.wait || h.Get("Content-Type") != want.typ {
			t.Errorf("%d %v %s", w.Code, h, w.Body)
		}
		if !strings.Contains(string(page), "`"+want.body+"`") && want.body != "" {
			t.Errorf("docs/http.md does not have %s", want.body)
		}
	}
}
