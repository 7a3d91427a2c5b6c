package oapistrict

import (
	"context"
	"testing"

	"github.com/rategen/rategen/examples/frameworks/refused"
)

type orders struct{}

func (orders) GetOrder(_ context.Context, request GetOrderRequestObject) (GetOrderResponseObject, error) {
	return GetOrder200TextResponse("order " + request.Id), nil
}

func TestRefused(t *testing.T) {
	refused.HTTP(t, newHandler(orders{}, refused.Limiter(t)))
	refused.Unavailable(t, newHandler(orders{}, refused.Down(t)))
}
