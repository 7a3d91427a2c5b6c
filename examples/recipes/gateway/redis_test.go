package gateway

import (
	"context"
	"errors"
	"iter"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/examples/recipes/internal/replica"
	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// A question has callers read answers at the same time.
type question struct {
	Callers []Caller
	Most    int  // tokens of each answer; 0: until it is ended
	Hang    bool // the answers stand still then, and are never over
	Linger  time.Duration
}

type answer struct {
	Asked   int64          // how often the model was
	Tokens  int64          // that callers have read
	Refused map[string]int // answers that were not begun, or ended, by rule
	Strange string
}

// A counted model notes that it is asked.
type counted struct {
	Model
	asked func()
}

func (m counted) Ask(ctx context.Context, c Caller, prompt string) iter.Seq2[Chunk, error] {
	m.asked()
	return m.Model.Ask(ctx, c, prompt)
}

func serve(client *redis.Client) (func(question) answer, *runtime.Limiter) {
	limiter := replica.Limiter(client, replica.Windows(replica.Year, "gateway.requests", "gateway.requests.user"))
	return func(q question) answer {
		a := answer{Refused: map[string]int{}}
		var mu sync.Mutex
		note := func(f func()) { mu.Lock(); defer mu.Unlock(); f() }
		var answers sync.WaitGroup
		for _, c := range q.Callers {
			made := 0
			model := NewRateLimitedModel(counted{endless{pause: time.Millisecond, made: &made}, func() { note(func() { a.Asked++ }) }}, limiter)
			answers.Add(1)
			go func() {
				n, over := 0, sync.OnceFunc(answers.Done)
				defer over()
				for _, err := range model.Ask(context.Background(), c, "") {
					if err != nil {
						note(func() {
							if limited := (*runtime.LimitedError)(nil); errors.As(err, &limited) {
								a.Refused[limited.Rule]++
							} else {
								a.Strange = err.Error()
							}
						})
						return
					}
					note(func() { a.Tokens++ })
					if n++; n == q.Most && !q.Hang {
						return
					} else if n == q.Most {
						over()
						select {}
					}
				}
			}()
		}
		answers.Wait()
		time.Sleep(q.Linger)
		return a
	}, limiter
}

func TestMain(m *testing.M) { replica.Main(m, serve) }

// many returns a caller n times.
func many(c Caller, n int) (all []Caller) {
	for range n {
		all = append(all, c)
	}
	return all
}

// Users of two replicas read answers until nobody is paid another token. Neither a user's
// budget nor the tenant's is overdrawn by one, nothing of them is unused, and what is charged
// to users is what is charged to the tenant.
func TestBudgets(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	p := replica.Start[question, answer](t, server.Addr, 2)
	limiter := replica.Limiter(server.Client(t))
	ann := Caller{Tenant: "acme", User: "ann", Budget: 5000 * out, Share: 2000 * out}
	bob := Caller{Tenant: "acme", User: "bob", Budget: 5000 * out, Share: 5000 * out}
	var asked, used int64
	run := func(callers ...Caller) {
		t.Helper()
		for _, a := range replica.All(p, question{Callers: callers}) {
			asked, used = asked+a.Asked, used+a.Tokens
			if a.Strange != "" || a.Refused["gateway.tokens"]+a.Refused["gateway.requests"]+a.Refused["gateway.requests.user"] > 0 {
				t.Errorf("%+v", a)
			}
		}
	}
	for range 2 { // the second time none holds what another lacks
		run(many(ann, 4)...)
		eventually(t, "nobody holds anything", func() bool {
			user, tenant := left(t, limiter, ann)
			return user == ann.Share-in*asked-out*used && tenant == ann.Budget-in*asked-out*used
		})
	}
	if user, _ := left(t, limiter, ann); user >= in+out {
		t.Errorf("ann has %d left of %d", user, ann.Share)
	}
	before := in*asked + out*used
	for range 2 {
		run(many(bob, 4)...)
		eventually(t, "nobody holds anything", func() bool {
			user, tenant := left(t, limiter, bob)
			return user == bob.Share+before-in*asked-out*used && tenant == bob.Budget-in*asked-out*used
		})
	}
	if _, tenant := left(t, limiter, bob); tenant >= in+out {
		t.Errorf("acme has %d left of %d", tenant, bob.Budget)
	}
}

// A replica that is killed while it answers takes no money with it: after five seconds the
// month has paid what was read, but for about the last second.
func TestCrash(t *testing.T) {
	t.Parallel()
	if !effort.Full() {
		t.Skip("waits for seconds: in a full run only")
	}
	server := redistest.Start(t)
	p := replica.Start[question, answer](t, server.Addr, 2)
	limiter := replica.Limiter(server.Client(t))
	c := Caller{Tenant: "acme", User: "ann", Budget: 1e9, Share: 1e9}
	spent := func() (user, tenant int64) {
		user, tenant = left(t, limiter, c)
		return c.Share - user, c.Budget - tenant
	}
	// Answers that stand still have paid for good.
	still := p[0].Ask(question{Callers: many(c, 4), Most: 100, Hang: true, Linger: 1500 * time.Millisecond})
	paid := 4 * int64(in+100*out)
	if user, tenant := spent(); still.Tokens != 400 || user != paid || tenant != paid {
		t.Errorf("%d tokens are read, and %d and %d paid, want %d", still.Tokens, user, tenant, paid)
	}
	// And these are killed with what they have in advance, if the machine is not too busy.
	fresh := p[0].Ask(question{Callers: many(c, 4), Most: 300, Hang: true})
	held, _ := spent()
	p[0].Kill()
	killed := time.Now()
	most := paid + 4*int64(in+300*out)
	if fresh.Tokens != 1200 {
		t.Errorf("%d tokens are read, want 1200", fresh.Tokens)
	}
	eventually(t, "what was held is back", func() bool {
		user, tenant := spent()
		return user <= most && tenant <= most
	})
	if took := time.Since(killed); took > modelAskLimit5.Reserve+time.Second {
		t.Errorf("what the replica held is back after %v", took)
	}
	time.Sleep(time.Until(killed.Add(modelAskLimit5.Reserve + time.Second)))
	user, tenant := spent()
	t.Logf("%d were paid when the replica was killed, %d for what was read; %d stay paid", held, most, user)
	if user < paid || user != tenant {
		t.Errorf("%d and %d stay paid, want at least %d", user, tenant, paid)
	}
	// All that is left can be used, by others.
	if a := p[1].Ask(question{Callers: many(c, 4), Most: 100}); a.Tokens != 400 {
		t.Errorf("%+v", a)
	}
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it is not so: " + what)
		}
	}
}
