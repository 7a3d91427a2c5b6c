package gateway

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/examples/recipes/internal/replica"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// A question begins calls, has those that have begun return, or asks only what is left.
type question struct {
	Request Request
	Calls   int
	Return  bool
	Used    int64 // tokens, of each call that returns
	Fail    bool
}

type answer struct {
	Admitted         int
	Refused          map[string]int // by rule
	RetryAfter       time.Duration
	Strange          string
	Tokens, Requests int64 // what is left to the tenant
	All              int64 // what tokens are left to all
}

// A model answers its calls when it is told how.
type model struct {
	begun chan struct{}
	how   chan question
}

var errModel = errors.New("the model is overloaded")

func (m model) Complete(context.Context, Request) (*Response, error) {
	m.begun <- struct{}{}
	q := <-m.how
	if q.Fail {
		return nil, errModel
	}
	resp := &Response{Text: "42"}
	resp.Usage.TotalTokens = q.Used
	return resp, nil
}

func serve(client *redis.Client) (func(question) answer, *runtime.Limiter) {
	limiter := replica.Limiter(client, replica.Windows(replica.Year,
		"gateway.requests", "gateway.tokens", "gateway.requests.all", "gateway.tokens.all"))
	plain := model{make(chan struct{}), make(chan question)}
	service := NewRateLimitedModel(plain, limiter)
	refused := make(chan error)
	var calls sync.WaitGroup
	running := 0
	return func(q question) answer {
		ctx, a := context.Background(), answer{Refused: map[string]int{}}
		for range q.Calls { // one after another up to the model, which holds them all
			calls.Go(func() {
				_, err := service.Complete(ctx, q.Request)
				if err != nil && !errors.Is(err, errModel) {
					refused <- err
				}
			})
			select {
			case <-plain.begun:
				a.Admitted++
			case err := <-refused:
				if limited := (*runtime.LimitedError)(nil); errors.As(err, &limited) {
					a.Refused[limited.Rule]++
					a.RetryAfter = limited.RetryAfter
				} else {
					a.Strange = err.Error()
				}
			}
		}
		running += a.Admitted
		if q.Return {
			for ; running > 0; running-- {
				plain.how <- q
			}
			calls.Wait()
		}
		key := runtime.NewKey().AddString(q.Request.Tenant)
		for limit, left := range map[*int64]runtime.Limit{
			&a.Requests: modelCompleteLimit.Limit(key),
			&a.Tokens:   modelCompleteLimit2.Limit(key),
			&a.All:      modelCompleteLimit4.Limit(nil),
		} {
			d, err := limiter.Peek(ctx, left)
			if *limit = d.Remaining; err != nil {
				*limit = -1
			}
		}
		return a
	}, limiter
}

func TestMain(m *testing.M) { replica.Main(m, serve) }

type processes []*replica.Process[question, answer]

func start(t *testing.T) processes {
	return replica.Start[question, answer](t, redistest.Start(t).Addr, 2)
}

// settled waits until so much is left. Charges are corrected in the background.
func (p processes) settled(t *testing.T, tenant string, tokens, requests, all int64) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		a := p[0].Ask(question{Request: Request{Tenant: tenant}})
		if a.Tokens == tokens && a.Requests == requests && a.All == all {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %d tokens and %d requests left, and %d tokens to all, want %d, %d and %d",
				tenant, a.Tokens, a.Requests, a.All, tokens, requests, all)
		}
	}
}

// Calls reserve what they may use and are charged what they have used.
func TestTokens(t *testing.T) {
	p := start(t)
	ask := question{Request: Request{Tenant: "acme", MaxTokens: 8000}, Calls: 10}
	admitted, refused := 0, 0
	for _, a := range replica.All(p, ask) {
		admitted += a.Admitted
		refused += a.Refused["gateway.tokens"]
	}
	if admitted != 12 || refused != 8 {
		t.Errorf("%d calls run and %d are refused, want 12 and 8", admitted, refused)
	}
	p.settled(t, "acme", 100_000-12*8000, 60-12, 1_000_000-12*8000)
	replica.All(p, question{Return: true, Used: 1000})
	p.settled(t, "acme", 100_000-12*1000, 60-12, 1_000_000-12*1000)

	// A call that fails costs a request and no tokens.
	replica.All(p, question{Request: ask.Request, Calls: 1, Return: true, Fail: true})
	p.settled(t, "acme", 100_000-12*1000, 60-14, 1_000_000-12*1000)

	// A prompt counts, and a MaxTokens that is missing or absurd is the largest.
	for i, tokens := range []int64{0, -5, math.MinInt64, math.MaxInt64} {
		tenant := string(rune('a' + i))
		req := Request{Tenant: tenant, Prompt: string(make([]byte, 400)), MaxTokens: tokens}
		if a := p[1].Ask(question{Request: req, Calls: 1}); a.Admitted != 1 || a.Tokens != 100_000-8192-100 {
			t.Errorf("%d tokens: %+v", tokens, a)
		}
		p[1].Ask(question{Return: true})
	}
	large := Request{Tenant: "large", Prompt: strings.Repeat("word", 100_000), MaxTokens: 1}
	a := p[1].Ask(question{Request: large, Calls: 1})
	if a.RetryAfter != runtime.Never || a.Refused["gateway.tokens"] != 1 || a.Tokens != 100_000 || a.Requests != 60 {
		t.Errorf("a prompt that never fits: %+v", a)
	}
}

// Who has used more than was reserved waits until that is paid, on all replicas, and
// if it was too much for all then everybody does.
func TestDebt(t *testing.T) {
	p := start(t)
	one := question{Request: Request{Tenant: "acme", MaxTokens: 8000}, Calls: 1}
	first := one
	first.Return, first.Used = true, 150_000
	if a := p[0].Ask(first); a.Admitted != 1 {
		t.Fatalf("%+v", a)
	}
	p.settled(t, "acme", 0, 59, 1_000_000-150_000)
	// The level is 150,000 and has to fall to 92,000.
	want := replica.Year / 100 * 58
	for _, q := range p {
		a := q.Ask(one)
		if a.Refused["gateway.tokens"] != 1 || a.RetryAfter > want || a.RetryAfter < want-time.Hour {
			t.Errorf("in debt: %+v, want to come back in %v", a, want)
		}
	}
	big := question{Request: Request{Tenant: "big", MaxTokens: 1}, Calls: 1, Return: true, Used: 850_000}
	if a := p[1].Ask(big); a.Admitted != 1 {
		t.Fatalf("%+v", a)
	}
	p.settled(t, "other", 100_000, 60, 0)
	one.Request.Tenant = "other"
	for _, a := range replica.All(p, one) {
		if a.Refused["gateway.tokens.all"] != 1 {
			t.Errorf("another tenant: %+v, want a refusal by the limit of all", a)
		}
	}
}

// Small calls are limited by their number, for each tenant and for all.
func TestRequests(t *testing.T) {
	p := start(t)
	admitted, refused := 0, 0
	for _, a := range replica.All(p, question{Request: Request{Tenant: "acme", MaxTokens: 1}, Calls: 50, Return: true, Used: 1}) {
		admitted += a.Admitted
		refused += a.Refused["gateway.requests"]
	}
	if admitted != 60 || refused != 40 {
		t.Errorf("%d calls admitted and %d refused, want 60 and 40", admitted, refused)
	}
	p.settled(t, "acme", 100_000-60, 0, 1_000_000-60)
	for i := range 8 {
		for j, q := range p {
			q.Send(question{Request: Request{Tenant: fmt.Sprint(i, j), MaxTokens: 1}, Calls: 60, Return: true, Used: 1})
		}
		for _, q := range p {
			a := q.Receive()
			admitted += a.Admitted
			refused += a.Refused["gateway.requests.all"]
		}
	}
	if admitted != 1000 || refused != 40+20 {
		t.Errorf("%d calls of all admitted and %d refused, want 1000 and 60", admitted, refused)
	}
	p.settled(t, "globex", 100_000, 60, 1_000_000-1000)
}
