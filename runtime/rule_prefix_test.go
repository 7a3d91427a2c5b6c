package runtime_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// Rules without a Prefix count apart, also where one rule's name continues in
// another one's key.
func TestRulesWithoutPrefix(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.Start(t)
	for name, store := range map[string]runtime.Store{"memory": runtime.NewMemoryStore(), "redis": runtime.NewRedisStore(server.Client(t), patient)} {
		limiter := runtime.New(store, quiet, closed)
		login := &runtime.Rule{Name: "login", Window: time.Hour, Max: 3}
		search := &runtime.Rule{Name: "search", Window: time.Second, Max: 100}
		one, two := runtime.Rule{Name: "a", Window: time.Hour, Max: 1}, runtime.Rule{Name: "a:b", Window: time.Hour, Max: 1}
		limits := []runtime.Limit{
			login.Limit(key("ann")), search.Limit(key("ann")),
			one.Limit(runtime.NewKey().AddString("b").AddString("")), two.Limit(key("")),
		}
		for i, limit := range limits {
			d, err := limiter.Take(ctx, limit)
			if err != nil || d.Remaining != d.Limit-1 {
				t.Errorf("%s, %d: got %+v, %v", name, i, d, err)
			}
		}
		if err := limiter.Reset(ctx, search.Limit(key("ann"))); err != nil {
			t.Error(err)
		}
		if d, err := limiter.Peek(ctx, login.Limit(key("ann"))); err != nil || d.Remaining != 2 {
			t.Errorf("%s: after the reset of another rule: got %+v, %v", name, d, err)
		}
	}
	for _, key := range []string{"rate_limit:login:ann", "rate_limit:a:b:", "rate_limit:a%3Ab:"} {
		if n := server.Client(t).Exists(ctx, key).Val(); n != 1 {
			t.Errorf("no key %q", key)
		}
	}
	rule := &runtime.Rule{Name: "login", Window: time.Hour, Max: 3}
	for namespace, want := range map[string]string{"": "rate_limit:login:", "shop": "shop:rate_limit:login:"} {
		if got := runtime.New(nil, runtime.WithNamespace(namespace)).KeysOf(rule).Prefix; got != want {
			t.Errorf("KeysOf has the prefix %q, want %q", got, want)
		}
	}
}

// A rule with neither a Prefix nor a Name is an error that names the remedy.
func TestRuleWithoutName(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	limiter := inMemory()
	limit := (&runtime.Rule{Window: time.Hour, Max: 1}).Limit(nil)
	_, taken := limiter.Take(ctx, limit)
	_, peeked := limiter.Peek(ctx, limit)
	for _, err := range []error{taken, peeked, limiter.TakeEach(ctx, limit)[0].Err, limiter.Reset(ctx, limit)} {
		if !errors.Is(err, runtime.ErrInvalidLimit) || !strings.Contains(err.Error(), "give it a Name") {
			t.Errorf("got %v", err)
		}
	}
}

// The default prefix costs no allocation.
func TestDefaultPrefixAllocates(t *testing.T) {
	ctx := context.Background()
	limiter := inMemory()
	limit := (&runtime.Rule{Name: "orders.Service.Create", Window: time.Hour, Max: 1_000_000, Algorithm: runtime.TokenBucket}).Limit(key("ann"))
	if n := fewestAllocs(func() { _, _ = limiter.Take(ctx, limit) }); n != 0 {
		t.Errorf("%v allocations a call", n)
	}
}
