// Package gqlapi limits a resolver, in the form that gqlgen gives it.
package gqlapi

import (
	"context"
	"errors"
	"math"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/rategen/rategen/runtime"
)

//go:generate go tool rategen

// An Order is a model.
type Order struct{ ID string }

// QueryResolver is what gqlgen asks a schema's queries of.
type QueryResolver interface {
	// Order returns an order.
	//
	//ratelimit:key=#id window=1h max=1
	Order(ctx context.Context, id string) (*Order, error)
}

// asGraphQL gives refusals a code, and the seconds to wait, as extensions.
func asGraphQL(_ context.Context, err error) error {
	limited, ok := errors.AsType[*runtime.LimitedError](err)
	if !ok {
		return &gqlerror.Error{Err: err, Message: "try again later", Extensions: map[string]any{"code": "UNAVAILABLE"}}
	}
	e := &gqlerror.Error{Err: err, Message: limited.Error(), Extensions: map[string]any{"code": "RATE_LIMITED"}}
	if limited.RetryAfter != runtime.Never {
		e.Extensions["retryAfter"] = math.Ceil(limited.RetryAfter.Seconds())
	}
	return e
}
