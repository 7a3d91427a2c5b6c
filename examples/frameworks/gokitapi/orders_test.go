package gokitapi

import (
	"net/http"
	"net/http/httptest"
	"testing"

	kit "github.com/go-kit/kit/transport/http"

	"github.com/rategen/rategen/examples/frameworks/refused"
)

type orders struct{}

func (orders) Show(id string) (string, error) { return "order " + id, nil }

func TestRefused(t *testing.T) {
	refused.HTTP(t, newHandler(orders{}, refused.Limiter(t)))
	refused.Unavailable(t, newHandler(orders{}, refused.Down(t)))
}

// Without a context no answer has fields, and only the encoder of errors says when to come back.
func TestWithoutContext(t *testing.T) {
	for name, c := range map[string]struct {
		options    []kit.ServerOption
		retryAfter string
	}{
		"go-kit's encoder":          {nil, ""},
		"the encoder that is shown": {[]kit.ServerOption{kit.ServerErrorEncoder(encodeError)}, "3600"},
	} {
		t.Run(name, func(t *testing.T) {
			handler := newBareHandler(orders{}, refused.Limiter(t), c.options...)
			for i, want := range []int{http.StatusOK, http.StatusTooManyRequests} {
				answer := httptest.NewRecorder()
				handler.ServeHTTP(answer, httptest.NewRequest("GET", "/orders/1", nil))
				fields := answer.Result().Header
				if answer.Code != want || fields.Get("RateLimit") != "" || i == 1 && fields.Get("Retry-After") != c.retryAfter {
					t.Errorf("status %d, %v; want %d, Retry-After %q and no RateLimit", answer.Code, fields, want, c.retryAfter)
				}
			}
		})
	}
}
