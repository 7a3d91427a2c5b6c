package humaapi

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rategen/rategen/examples/frameworks/refused"
)

type orders struct{}

func (orders) Show(_ context.Context, in *ShowInput) (*ShowOutput, error) {
	out := new(ShowOutput)
	out.Body.ID = in.ID
	return out, nil
}

// huma answers an error that it does not know with 500, and the middleware that with the refusal.
func TestRefused(t *testing.T) {
	server := httptest.NewServer(newHandler(orders{}, refused.Limiter(t)))
	t.Cleanup(server.Close)
	for _, want := range []struct {
		path, has string
		status    int
		retry     bool
	}{
		{"/orders/1", `"id":"1"`, http.StatusOK, false},
		{"/orders/1", `"title":"Quota Exceeded","status":429`, http.StatusTooManyRequests, true},
		{"/orders/2", `"id":"2"`, http.StatusOK, false},
	} {
		answer, err := http.Get(server.URL + want.path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != want.status || !strings.Contains(string(body), want.has) ||
			(answer.Header.Get("Retry-After") != "") != want.retry || answer.Header.Get("RateLimit") == "" {
			t.Errorf("GET %s: %d %v %s %v, want %d and %s", want.path, answer.StatusCode, answer.Header, body, err, want.status, want.has)
		}
	}
	refused.Unavailable(t, newHandler(orders{}, refused.Down(t)))
}
