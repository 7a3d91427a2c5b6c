// Package zeroapi limits the logic of go-zero. It has the shape of what goctl writes: go-zero takes
// long to compile.
package zeroapi

import (
	"context"
	"errors"
	"net/http"
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
