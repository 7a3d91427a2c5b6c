package gqlapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/rategen/rategen/examples/frameworks/refused"
	"github.com/rategen/rategen/runtime"
)

type resolver struct{}

func (resolver) Order(_ context.Context, id string) (*Order, error) { return &Order{ID: id}, nil }

// gqlgen writes a [gqlerror.Error] that it finds in an error as JSON.
func TestRefused(t *testing.T) {
	orders := NewRateLimitedQueryResolver(resolver{}, refused.Limiter(t, runtime.WithRefusalError(asGraphQL)))
	if _, err := orders.Order(t.Context(), "1"); err != nil {
		t.Fatal(err)
	}
	_, err := orders.Order(t.Context(), "1")
	found, ok := errors.AsType[*gqlerror.Error](err)
	if !ok {
		t.Fatalf("the second call: %v, want a *gqlerror.Error", err)
	}
	text, err := json.Marshal(found)
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Extensions struct {
			Code       string
			RetryAfter int
		}
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		t.Fatal(err)
	}
	if e := answer.Extensions; e.Code != "RATE_LIMITED" || e.RetryAfter < 1 || e.RetryAfter > 3600 {
		t.Errorf("answer %s, want the code RATE_LIMITED, and 1 to 3600 seconds to wait", text)
	}
}

// An outage has another code, and its text names no server.
func TestUnavailable(t *testing.T) {
	err := asGraphQL(t.Context(), fmt.Errorf("%w: dial tcp 127.0.0.1:6379: connection refused", runtime.ErrUnavailable))
	text, failed := json.Marshal(err)
	if failed != nil || !strings.Contains(string(text), `"UNAVAILABLE"`) || strings.Contains(string(text), "127.0.0.1") {
		t.Errorf("an outage is told as %s, %v", text, failed)
	}
}
