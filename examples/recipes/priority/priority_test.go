package priority

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/examples/recipes/internal/replica"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

type question struct {
	Request Request
	Calls   int
}

type answer struct {
	Admitted int
	Strange  string
}

type orders struct{}

func (orders) Submit(context.Context, Request) error { return nil }

func serve(client *redis.Client) (func(question) answer, *runtime.Limiter) {
	limiter := replica.Limiter(client, replica.Windows(replica.Year, "orders.submit"))
	service := NewRateLimitedOrders(orders{}, limiter)
	return func(q question) (a answer) {
		for range q.Calls {
			if err := service.Submit(context.Background(), q.Request); err == nil {
				a.Admitted++
			} else if !errors.Is(err, runtime.ErrLimited) {
				a.Strange = err.Error()
			}
		}
		return a
	}, limiter
}

func TestMain(m *testing.M) { replica.Main(m, serve) }

// Each priority may fill the limit as far as its share, whoever has filled it so far.
func TestPriority(t *testing.T) {
	processes := replica.Start[question, answer](t, redistest.Start(t).Addr, 2)
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
		for _, a := range replica.All(processes, question{Request{step.tenant, step.priority}, step.calls}) {
			if a.Strange != "" {
				t.Fatal(a.Strange)
			}
			got += a.Admitted
		}
		if got != step.want {
			t.Errorf("step %d, %s: %d of priority %d admitted, want %d", i, step.tenant, got, step.priority, step.want)
		}
	}
}
