package gatewayapi

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	api "go.temporal.io/api/workflowservice/v1"

	"github.com/rategen/rategen/examples/frameworks/refused"
)

type service struct {
	api.UnimplementedWorkflowServiceServer
}

func (service) DescribeNamespace(context.Context, *api.DescribeNamespaceRequest) (*api.DescribeNamespaceResponse, error) {
	return &api.DescribeNamespaceResponse{}, nil
}

func TestRefused(t *testing.T) {
	get := func(handler http.Handler, path string) *http.Response {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest("GET", path, nil))
		refused.NoAddress(t, answer.Body.String())
		return answer.Result()
	}
	handler, err := newHandler(service{}, refused.Limiter(t))
	if err != nil {
		t.Fatal(err)
	}
	down, err := newHandler(service{}, refused.Down(t))
	if err != nil {
		t.Fatal(err)
	}
	const shop, other = "/api/v1/namespaces/shop", "/api/v1/namespaces/other"
	for i, c := range []struct {
		handler http.Handler
		path    string
		status  int
		fields  string // those that the answer has
	}{
		{handler, shop, http.StatusOK, "RateLimit"},
		{handler, shop, http.StatusTooManyRequests, "RateLimit Retry-After"},
		{handler, other, http.StatusOK, "RateLimit"},
		{handler, "/api/v1/namespaces", http.StatusNotImplemented, ""}, // no limit's error
		{down, shop, http.StatusServiceUnavailable, ""},
	} {
		answer := get(c.handler, c.path)
		var fields []string
		for _, field := range []string{"RateLimit", "Retry-After"} {
			if answer.Header.Get(field) != "" {
				fields = append(fields, field)
			}
		}
		if got := strings.Join(fields, " "); answer.StatusCode != c.status || got != c.fields {
			t.Errorf("request %d, %s: %d with %q, want %d with %q", i, c.path, answer.StatusCode, got, c.status, c.fields)
		}
	}
}
