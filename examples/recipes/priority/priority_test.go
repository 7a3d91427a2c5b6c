package priority

import (
	"context"
	"errors"
	"testing"

	"github.com/rategen/rategen/examples/recipes/internal/replica"
	"github.com/rategen/rategen/runtime"
)

type orders struct{}

func (orders) Submit(context.Context, Request) error { return nil }

// Each priority may fill the limit as far as its share, whoever has filled it so far.
func TestPriority(t *testing.T) {
	var replicas []Orders
	for _, limiter := range replica.Limiters(t, replica.Year("orders.submit")) {
		replicas = append(replicas, NewRateLimitedOrders(orders{}, limiter))
	}
	for i, step := range []struct {
		tenant   string
		priority Priority
		calls    int // on each replica
		want     int // admitted, of all
	}{
		{"acme", Low, 60, 80},
		{"acme", Normal, 60, 10},
		{"acme", Low, 10, 0},
		{"acme", High, 60, 10},
		{"acme", High, 10, 0},
		{"globex", High, 25, 50},
		{"globex", Low, 60, 30},
		{"globex", High, 60, 20},
		{"initech", -1, 60, 80},
		{"initech", 99, 10, 0},
	} {
		got := 0
		for _, admitted := range replica.All(replicas, func(s Orders) (admitted int) {
			for range step.calls {
				if err := s.Submit(t.Context(), Request{step.tenant, step.priority}); err == nil {
					admitted++
				} else if !errors.Is(err, runtime.ErrLimited) {
					t.Error(err)
				}
			}
			return admitted
		}) {
			got += admitted
		}
		if got != step.want {
			t.Errorf("step %d, %s: %d of priority %d admitted, want %d", i, step.tenant, got, step.priority, step.want)
		}
	}
}
