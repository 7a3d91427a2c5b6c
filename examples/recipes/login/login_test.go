package login

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/examples/recipes/internal/replica"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

type question struct {
	User, Password, Address string
	Tries                   int
	Others                  bool // every try is for another user
	Unlock                  bool // first
}

type answer struct {
	Checked  int // passwords
	In       int // log-ins
	Rules    map[string]int
	Blocked  int
	Longest  time.Duration // until the next try
	Shortest time.Duration
	Strange  string

	User, Address int64 // what is left of both limits
}

// passwords are accounts that count how often they are asked. One of them is in a
// database that is away.
type passwords struct{ checked int }

func (p *passwords) LogIn(_ context.Context, user, password string) (string, error) {
	p.checked++
	if account(user) == "away" {
		return "", errors.New("database is away")
	}
	if password != "right" {
		return "", ErrWrong
	}
	return "token", nil
}

func serve(client *redis.Client) (func(question) answer, *runtime.Limiter) {
	limiter := replica.Limiter(client)
	plain := &passwords{}
	service := NewRateLimitedAccounts(plain, limiter)
	return func(q question) answer {
		ctx := ratehttp.WithClientIP(context.Background(), netip.MustParseAddr(q.Address))
		a, before := answer{Rules: map[string]int{}}, plain.checked
		if q.Unlock {
			if err := Unlock(ctx, limiter, q.User); err != nil {
				a.Strange = err.Error()
			}
		}
		for i := range q.Tries {
			user := q.User
			if q.Others {
				user = fmt.Sprint(user, i)
			}
			_, err := service.LogIn(ctx, user, q.Password)
			if limited := (*runtime.LimitedError)(nil); errors.As(err, &limited) {
				a.Rules[limited.Rule]++
				if limited.Blocked {
					a.Blocked++
				}
				a.Longest = max(a.Longest, limited.RetryAfter)
				if a.Shortest == 0 || limited.RetryAfter < a.Shortest {
					a.Shortest = limited.RetryAfter
				}
			} else if err == nil {
				a.In++
			} else if !errors.Is(err, ErrWrong) {
				a.Strange = err.Error()
			}
		}
		a.Checked = plain.checked - before
		a.User = left(ctx, limiter, accountsLogInLimit.Limit(runtime.NewKey().AddString(account(q.User))))
		a.Address = left(ctx, limiter, accountsLogInLimit2.Limit(runtime.NewKey().AddString(ratehttp.ClientIP(ctx))))
		return a
	}, limiter
}

func left(ctx context.Context, limiter *runtime.Limiter, limit runtime.Limit) int64 {
	d, err := limiter.Peek(ctx, limit)
	if err != nil && !errors.Is(err, runtime.ErrLimited) {
		return -1
	}
	return d.Remaining
}

func TestMain(m *testing.M) { replica.Main(m, serve) }

// Of all that is tried on two replicas five passwords of a user are looked at. Then
// the user is blocked, and nothing more is charged to the address, until somebody
// unlocks the user.
func TestUser(t *testing.T) {
	processes := replica.Start[question, answer](t, redistest.Start(t).Addr, 2)
	checked, blocked := 0, 0
	for _, a := range replica.All(processes, question{User: "ann", Password: "guess", Address: "203.0.113.7", Tries: 40}) {
		checked += a.Checked
		blocked += a.Blocked
		if a.Rules["login.user"] != 40-a.Checked || a.Longest > time.Hour || a.Shortest < 30*time.Minute {
			t.Errorf("refusals: %+v", a)
		}
	}
	if checked != 5 || blocked != 75 {
		t.Errorf("%d passwords looked at, %d tries blocked, want 5 and 75", checked, blocked)
	}
	for i, spelling := range []string{"ann", " ANN"} {
		a := processes[i].Ask(question{User: spelling, Password: "right", Address: "198.51.100.1", Tries: 1})
		if a.In != 0 || a.Blocked != 1 {
			t.Errorf("%q with the right password: %+v, want a block", spelling, a)
		}
		if a := processes[i].Ask(question{User: "ann", Address: "203.0.113.7"}); a.Address != 45 {
			t.Errorf("%d left to the address, want 45", a.Address)
		}
	}
	right := question{User: "ann", Password: "right", Address: "198.51.100.1", Tries: 1}
	if a := processes[0].Ask(question{User: "Ann", Address: right.Address, Unlock: true}); a.Strange != "" || a.User != 5 {
		t.Errorf("unlocked: %+v, want 5 tries left", a)
	}
	for i, p := range processes { // the other replica remembers the block for a moment
		for deadline := time.Now().Add(time.Minute); p.Ask(right).In == 0; {
			if time.Now().After(deadline) {
				t.Fatalf("replica %d does not let the user in", i)
			}
		}
	}
}

// An address that tries many users is blocked, and those users are not.
func TestAddress(t *testing.T) {
	processes := replica.Start[question, answer](t, redistest.Start(t).Addr, 2)
	checked, blocked := 0, 0
	for i, p := range processes {
		p.Send(question{User: fmt.Sprintf("user%d-", i), Password: "guess", Address: "2001:db8::1", Tries: 60, Others: true})
	}
	for _, p := range processes {
		a := p.Receive()
		checked += a.Checked
		blocked += a.Blocked
		if a.Rules["login.address"] != 60-a.Checked {
			t.Errorf("refusals: %+v", a)
		}
	}
	if checked != 50 || blocked != 70 {
		t.Errorf("%d passwords looked at, %d tries blocked, want 50 and 70", checked, blocked)
	}
	for _, p := range processes {
		if a := p.Ask(question{User: "user0-", Password: "right", Address: "2001:db8:0:100::1", Tries: 1, Others: true}); a.In != 1 {
			t.Errorf("from elsewhere: %+v, want a log-in", a)
		}
	}
}

// What is no wrong password is given back, on whatever replica it was.
func TestOnlyFailuresCount(t *testing.T) {
	processes := replica.Start[question, answer](t, redistest.Start(t).Addr, 2)
	const address = "203.0.113.7"
	settled := func(user string, want int64) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; {
			a := processes[0].Ask(question{User: user, Address: address})
			if a.User == want && a.Address == 50-(5-want) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: %d left, and %d to the address, want %d and %d", user, a.User, a.Address, want, 50-(5-want))
			}
		}
	}
	for i := range 12 {
		if a := processes[i%2].Ask(question{User: "bea", Password: "right", Address: address, Tries: 1}); a.In != 1 {
			t.Fatalf("log-in %d: %+v", i, a)
		}
		settled("bea", 5)
		if a := processes[i%2].Ask(question{User: "away", Password: "right", Address: address, Tries: 1}); a.Strange != "database is away" {
			t.Fatalf("log-in %d without the database: %+v", i, a)
		}
		settled("away", 5)
	}
	processes[0].Ask(question{User: "bea", Password: "wrong", Address: address, Tries: 4})
	if a := processes[1].Ask(question{User: "bea", Password: "right", Address: address, Tries: 1}); a.In != 1 {
		t.Fatalf("after four failures: %+v", a)
	}
	settled("bea", 1) // a log-in forgives nothing
}
