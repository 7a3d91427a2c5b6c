package gateway

import (
	"context"
	"errors"
	"iter"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rategen/rategen/examples/recipes/internal/replica"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
)

// A counted model notes that it is asked.
type counted struct {
	Model
	asked *atomic.Int64
}

func (m counted) Ask(ctx context.Context, c Caller, prompt string) iter.Seq2[Chunk, error] {
	m.asked.Add(1)
	return m.Model.Ask(ctx, c, prompt)
}

// Users of two replicas read answers until nobody is paid another token. Neither a user's
// budget nor the tenant's is overdrawn by one, nothing of them is unused, and what is charged
// to users is what is charged to the tenant.
func TestBudgets(t *testing.T) {
	t.Parallel()
	var asked, used atomic.Int64
	limiters := replica.Limiters(t, replica.Year("gateway.requests", "gateway.requests.user"))
	cost := func() int64 { return in*asked.Load() + out*used.Load() }
	// run has a caller read four answers on each replica, twice: the second time none holds what
	// another lacks. before is what others have cost.
	run := func(c Caller, before int64) {
		t.Helper()
		for range 2 {
			var answers sync.WaitGroup
			for _, limiter := range limiters {
				for range 4 {
					answers.Go(func() {
						made := 0
						model := NewRateLimitedModel(counted{endless{pause: time.Millisecond, made: &made}, &asked}, limiter)
						n, err := read(t.Context(), model, c, "", 0)
						used.Add(int64(n))
						var limited *runtime.LimitedError
						if !errors.As(err, &limited) || limited.Rule != "gateway.money" && limited.Rule != "gateway.money.user" {
							t.Errorf("an answer ends with %v", err)
						}
					})
				}
			}
			answers.Wait()
			limittest.Eventually(t, "nobody holds anything", func() bool {
				user, tenant := left(t, limiters[0], c)
				return user == c.Share+before-cost() && tenant == c.Budget-cost()
			})
		}
	}
	ann := Caller{Tenant: "acme", User: "ann", Budget: 5000 * out, Share: 2000 * out}
	bob := Caller{Tenant: "acme", User: "bob", Budget: 5000 * out, Share: 5000 * out}
	run(ann, 0)
	if user, _ := left(t, limiters[0], ann); user >= in+out {
		t.Errorf("ann has %d left of %d", user, ann.Share)
	}
	run(bob, cost())
	if _, tenant := left(t, limiters[0], bob); tenant >= in+out {
		t.Errorf("acme has %d left of %d", tenant, bob.Budget)
	}
}
