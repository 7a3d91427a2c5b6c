package oapiplain

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/rategen/rategen/examples/frameworks/refused"
)

type orders struct{}

func (orders) GetOrder(w http.ResponseWriter, _ *http.Request, id string) {
	fmt.Fprintf(w, "order %s", id)
}

func TestRefused(t *testing.T) {
	refused.HTTP(t, newHandler(orders{}, refused.Limiter(t)))
	refused.Unavailable(t, newHandler(orders{}, refused.Down(t)))
}
