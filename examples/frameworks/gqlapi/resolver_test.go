package gqlapi

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/rategen/rategen/examples/frameworks/refused"
	"github.com/rategen/rategen/runtime"
)

type resolver struct{}

func (resolver) Order(_ context.Context, id string) (*Order, error) { return &Order{ID: id}, nil }

// gqlgen writes a [gqlerror.Error] that it finds in an error as JSON.
func TestRefused(t *testing.T) {
	orders := NewRateLimitedQueryResolver(resolver{}, refused.Limiter(t, runtime.WithDenied(asGraphQL)))
	if _, err := orders.Order(t.Context(), "1"); err != nil {
		t.Fatal(err)
	}
	_, err := orders.Order(t.Context(), "1")
	a := written(t, err)
	if e := a.Extensions; e.Code != "RATE_LIMITED" || e.RetryAfter < 1 || e.RetryAfter > 3600 || a.Message != "too many orders, come back in 1h" {
		t.Errorf("answer %+v, want the code RATE_LIMITED, and 1 to 3600 seconds to wait", a)
	}
}

func TestUnavailable(t *testing.T) {
	_, err := NewRateLimitedQueryResolver(resolver{}, refused.Down(t, runtime.WithDenied(asGraphQL))).Order(t.Context(), "1")
	a := written(t, err)
	if a.Extensions.Code != "RATE_LIMITER_UNAVAILABLE" || a.Extensions.RetryAfter != 0 {
		t.Errorf("answer %+v, want the code RATE_LIMITER_UNAVAILABLE alone", a)
	}
	refused.NoAddress(t, a.Message)
}

type answer struct {
	Message    string
	Extensions struct {
		Code       string
		RetryAfter int
	}
}

// written returns what gqlgen writes of an error.
func written(t *testing.T, err error) (a answer) {
	t.Helper()
	found, ok := errors.AsType[*gqlerror.Error](err)
	if !ok {
		t.Fatalf("%v is no *gqlerror.Error", err)
	}
	text, err := json.Marshal(found)
	if err == nil {
		err = json.Unmarshal(text, &a)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}
