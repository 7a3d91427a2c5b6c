package oapi

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/rategen/rategen/examples/frameworks/refused"
)

type (
	orders       struct{}
	strictOrders struct{}
)

func (orders) GetOrder(w http.ResponseWriter, _ *http.Request, id string) {
	fmt.Fprintf(w, "order %s", id)
}

func (strictOrders) GetOrder(_ context.Context, request GetOrderRequestObject) (GetOrderResponseObject, error) {
	return GetOrder200TextResponse("order " + request.Id), nil
}

func TestRefused(t *testing.T) {
	refused.HTTP(t, newHandler(orders{}, refused.Limiter(t)))
	refused.Unavailable(t, newHandler(orders{}, refused.Down(t)))
	refused.HTTP(t, newStrictHandler(strictOrders{}, refused.Limiter(t)))
	refused.Unavailable(t, newStrictHandler(strictOrders{}, refused.Down(t)))
}
