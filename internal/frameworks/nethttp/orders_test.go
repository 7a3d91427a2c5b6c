package nethttp

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/rategen/rategen/internal/frameworks/refused"
)

type orders struct{}

func (orders) Show(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, "order %s", r.PathValue("id"))
}

func TestRefused(t *testing.T) {
	refused.HTTP(t, newHandler(orders{}, refused.Limiter(t)), refused.WithFields)
}
