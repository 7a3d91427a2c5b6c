package gateway

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
)

// An endless model answers with chunks of one token, until it is stopped.
type endless struct {
	pause time.Duration // before each chunk
	fails int           // after so many chunks, if above 0
	made  *int          // chunks
}

var errModel = errors.New("the model is overloaded")

func (e endless) Ask(context.Context, Caller, string) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		for n := 1; ; n++ {
			time.Sleep(e.pause)
			if n-1 == e.fails && e.fails > 0 {
				yield(Chunk{}, errModel)
				return
			}
			*e.made++
			if !yield(Chunk{Text: "word ", Tokens: 1}, nil) {
				return
			}
		}
	}
}

// read reads an answer of at most so many chunks, and returns how many it had, and its error.
func read(ctx context.Context, model Model, c Caller, prompt string, most int) (n int, err error) {
	for chunk, err := range model.Ask(ctx, c, prompt) {
		if err != nil {
			return n, err
		}
		if n += int(chunk.Tokens); n == most {
			break
		}
	}
	return n, nil
}

// refusal returns the rule that has ended an answer, and for how long.
func refusal(t *testing.T, err error) (string, time.Duration) {
	t.Helper()
	var limited *runtime.LimitedError
	if !errors.As(err, &limited) {
		t.Fatalf("the answer ends with %v, want a refusal", err)
	}
	return limited.Rule, limited.RetryAfter
}

// inMemory returns a model whose limits count without Redis.
func inMemory(plain Model) (Model, *runtime.Limiter) {
	limiter := runtime.New(runtime.NewMemoryStore(), runtime.WithLogger(slog.New(slog.DiscardHandler)))
	return NewRateLimitedModel(plain, limiter), limiter
}

// left returns what a caller may still spend, and its tenant.
func left(t *testing.T, limiter *runtime.Limiter, c Caller) (user, tenant int64) {
	t.Helper()
	u := modelAskLimit4.Limit(runtime.NewKey().AddString(c.Tenant).AddString(c.User)).WithMax(c.Share)
	all := modelAskLimit5.Limit(runtime.NewKey().AddString(c.Tenant)).WithMax(c.Budget)
	usage, err := limiter.Usage(context.Background(), u, all)
	if err != nil {
		t.Fatal(err)
	}
	return usage[0].Remaining, usage[1].Remaining
}

// An answer ends at the last token that is paid, by whichever budget is used up first, and
// both have paid the same. The model is stopped, and the next month goes on.
func TestLastToken(t *testing.T) {
	for _, test := range []struct {
		share, budget int64
		prompt        string
		want          int
		rule          string
	}{
		{share: 300 + 1000*out, budget: 1e9, want: 1000, rule: "gateway.money.user"},
		{share: 1e9, budget: 300 + 1000*out, want: 1000, rule: "gateway.money"},
		{share: 300 + 1000*out - 1, budget: 1e9, want: 999, rule: "gateway.money.user"},
		{share: 300 + out, budget: 1e9, want: 1, rule: "gateway.money.user"},
		{share: 300 + out - 1, budget: 1e9, want: 0, rule: "gateway.money.user"},
		{share: 101 * 300, budget: 1e9, prompt: strings.Repeat("word", 100), want: 0, rule: "gateway.money.user"},
	} {
		synctest.Test(t, func(t *testing.T) {
			made := 0
			model, limiter := inMemory(endless{pause: 10 * time.Millisecond, made: &made})
			c := Caller{Tenant: "acme", User: "ann", Budget: test.budget, Share: test.share}
			n, err := read(t.Context(), model, c, test.prompt, 0)
			rule, wait := refusal(t, err)
			if n != test.want || made != n+1 || rule != test.rule {
				t.Errorf("%+v: %d tokens of %d made, then %v by %s", test, n, made, err, rule)
			}
			cost := in*tokens(test.prompt) + int64(n)*out
			if user, tenant := left(t, limiter, c); user != test.share-cost || tenant != test.budget-cost {
				t.Errorf("%+v: %d and %d are left, want %d and %d", test, user, tenant, test.share-cost, test.budget-cost)
			}
			next := time.Date(2000, time.February, 1, 0, 0, 0, 0, time.UTC)
			if wait != time.Until(next) {
				t.Errorf("%+v: it ends for %v, want the rest of the month, %v", test, wait, time.Until(next))
			}
			time.Sleep(time.Until(next))
			if user, tenant := left(t, limiter, c); user != test.share || tenant != test.budget {
				t.Errorf("%+v: %d and %d are left of the next month", test, user, tenant)
			}
		})
	}
}

// A minute's tokens slow answers down, and end none.
func TestSlowsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := 0
		model, _ := inMemory(endless{made: &made})
		c := Caller{Tenant: "acme", User: "ann", Budget: 1e12, Share: 1e12}
		begin := time.Now()
		if n, err := read(t.Context(), model, c, "", 150_000); n != 150_000 || err != nil {
			t.Errorf("%d tokens, then %v", n, err)
		}
		if took := time.Since(begin); took < 30*time.Second || took > 31*time.Second {
			t.Errorf("150,000 tokens at 100,000 a minute, which the bucket holds, take %v", took)
		}
	})
}

// An answer that fails, or whose reader goes away, costs what it had until then; one that
// never began costs no money.
func TestCutShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := 0
		model, limiter := inMemory(endless{fails: 7, made: &made})
		c := Caller{Tenant: "acme", User: "ann", Budget: 1e9, Share: 1e9}
		if n, err := read(t.Context(), model, c, "", 0); n != 7 || err != errModel {
			t.Errorf("%d tokens, then %v", n, err)
		}
		if n, err := read(t.Context(), model, c, "", 3); n != 3 || err != nil {
			t.Errorf("%d tokens, then %v", n, err)
		}
		for range 18 {
			if _, err := read(t.Context(), model, c, "", 1); err != nil {
				t.Fatal(err)
			}
		}
		_, err := read(t.Context(), model, c, "", 1)
		if rule, _ := refusal(t, err); rule != "gateway.requests.user" {
			t.Errorf("the 21st request is refused by %s", rule)
		}
		want := int64(1e9 - 20*in - (7+3+18)*out)
		if user, tenant := left(t, limiter, c); user != want || tenant != want {
			t.Errorf("%d and %d are left, want %d", user, tenant, want)
		}
	})
}
