package runtime_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rategen/rategen/runtime"
)

func TestInvalidLimit(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	good := &runtime.Rule{Name: "good", Prefix: "good:", Window: time.Hour, Max: 5}
	limit := func(rule runtime.Rule) runtime.Limit { return rule.Limit(key("k")) }
	many := make([]runtime.Limit, runtime.MaxLimits+1)
	for i := range many {
		many[i] = good.Limit(runtime.NewKey().AddInt(int64(i)))
	}
	tests := map[string][]runtime.Limit{
		"cost -1 is negative":       {good.Limit(key("k")), good.Limit(key("l")).WithCost(-1)},
		"max -1 is negative":        {good.Limit(key("k")), good.Limit(key("l")).WithMax(-1)},
		"the maximum is 8":          many,
		"same prefix and key":       {good.Limit(key("k")), limit(runtime.Rule{Name: "r", Prefix: "good:", Window: time.Minute, Max: 1})},
		"no rule":                   {good.Limit(key("k")), {}},
		"window 1µs":                {good.Limit(key("k")), limit(runtime.Rule{Name: "r", Window: time.Microsecond, Max: 1})},
		"window 8785h0m0s":          {good.Limit(key("k")), limit(runtime.Rule{Name: "r", Window: 8785 * time.Hour, Max: 1})},
		"unknown algorithm":         {good.Limit(key("k")), limit(runtime.Rule{Name: "r", Window: time.Hour, Max: 1, Algorithm: 99})},
		"max 1000001 is":            {good.Limit(key("k")), limit(runtime.Rule{Name: "r", Window: time.Hour, Max: 1000001})},
		"maximum of a token-bucket": {good.Limit(key("k")), limit(runtime.Rule{Name: "r", Window: time.Hour, Max: runtime.MaxCount + 1, Algorithm: runtime.TokenBucket})},
		"142 years":                 {good.Limit(key("k")), limit(runtime.Rule{Name: "r", Window: time.Hour, Max: 1, Burst: runtime.MaxCount, Algorithm: runtime.TokenBucket})},
		"resolution":                {good.Limit(key("k")), limit(runtime.Rule{Name: "r", Window: time.Second, Max: 1, Resolution: time.Hour})},
		"buckets":                   {good.Limit(key("k")), limit(runtime.Rule{Name: "r", Window: time.Hour, Max: 1, Algorithm: runtime.SlidingCounter, Buckets: runtime.EqualBuckets(0)})},
		"wait -1s":                  {good.Limit(key("k")), limit(runtime.Rule{Name: "r", Window: time.Hour, Max: 1, Wait: -time.Second})},
	}
	for text, limits := range tests {
		for _, policy := range []runtime.FailurePolicy{runtime.FailOpen, runtime.FailClosed, runtime.FailLocal} {
			store := runtime.NewMemoryStore()
			limiter := runtime.New(store, quiet, runtime.WithFailurePolicy(policy))
			d, err := limiter.Take(ctx, limits...)
			if !errors.Is(err, runtime.ErrInvalidLimit) || d.Allowed || !strings.Contains(err.Error(), text) {
				t.Errorf("%s, %v: got %+v, %v", text, policy, d, err)
			}
			if _, err := limiter.Peek(ctx, limits...); !errors.Is(err, runtime.ErrInvalidLimit) {
				t.Errorf("%s, %v: peek: %v", text, policy, err)
			}
			if d, err := limiter.Peek(ctx, good.Limit(key("k"))); err != nil || d.Remaining != 5 {
				t.Errorf("%s, %v: something was charged: %+v, %v", text, policy, d, err)
			}
		}
	}
}

func TestCostZero(t *testing.T) {
	t.Parallel()
	store := &brokenStore{}
	limiter := runtime.New(store, quiet, runtime.WithFailurePolicy(runtime.FailClosed))
	rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 1}
	for range 3 {
		d, err := limiter.Take(context.Background(), rule.Limit(nil).WithCost(0))
		if diff := cmp.Diff(runtime.Decision{Allowed: true}, d, cmp.AllowUnexported(runtime.Decision{})); err != nil || diff != "" {
			t.Errorf("got %v, %s", err, diff)
		}
	}
	// Even where nobody is admitted.
	taken(t, limiter, rule.Limit(nil).WithCost(0).WithMax(0))
	if n := store.takes.Load(); n != 0 {
		t.Errorf("the store was asked %d times", n)
	}
}

func TestCostExceedsLimit(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 5, Message: "too dear", Wait: time.Hour}
	burst := &runtime.Rule{Name: "b", Prefix: "b:", Window: time.Hour, Max: 5, Burst: 2, Algorithm: runtime.TokenBucket}
	other := &runtime.Rule{Name: "o", Prefix: "o:", Window: time.Hour, Max: 5}
	store := runtime.NewMemoryStore()
	limiter := runtime.New(store, quiet)
	for name, limit := range map[string]runtime.Limit{
		"cost over max":   rule.Limit(nil).WithCost(6),
		"cost over burst": burst.Limit(nil).WithCost(3),
		"max 0":           rule.Limit(nil).WithMax(0),
		"burst and max 0": burst.Limit(nil).WithMax(0),
	} {
		d, err := limiter.Take(ctx, other.Limit(nil), limit)
		var limited *runtime.LimitedError
		if !errors.Is(err, runtime.ErrCostExceedsLimit) || !errors.Is(err, runtime.ErrLimited) || !errors.As(err, &limited) {
			t.Fatalf("%s: got %+v, %v", name, d, err)
		}
		if d.Allowed || d.RetryAfter != runtime.Never || limited.RetryAfter != runtime.Never || d.Source != runtime.SourceNone {
			t.Errorf("%s: got %+v, %+v", name, d, limited)
		}
		if strings.HasSuffix(name, "over max") && (limited.Error() != "too dear" || limited.Limit != 5 || limited.Rule != "r") {
			t.Errorf("%s: got %+v", name, limited)
		}
		if d, err := limiter.Peek(ctx, limit); err != nil || d.Allowed || d.RetryAfter != runtime.Never {
			t.Errorf("%s: peek: %+v, %v", name, d, err)
		}
	}
	if d, err := limiter.Peek(ctx, other.Limit(nil)); err != nil || d.Remaining != 5 {
		t.Errorf("something was charged: %+v, %v", d, err)
	}
	// In shadow mode it is only reported.
	hidden := *rule
	hidden.Mode = runtime.ModeShadow
	if d, err := limiter.Take(ctx, hidden.Limit(nil).WithCost(6), other.Limit(nil)); err != nil || d.Remaining != 4 {
		t.Errorf("shadow: got %+v, %v", d, err)
	}
}

func TestKillSwitch(t *testing.T) {
	t.Parallel()
	var on atomic.Bool
	limiter := inMemory(runtime.WithEnabled(on.Load))
	limit := (&runtime.Rule{Name: "r", Window: time.Hour, Max: 1}).Limit(nil)
	for _, turn := range []struct {
		on       bool
		admitted bool
	}{{false, true}, {false, true}, {true, true}, {true, false}, {false, true}, {true, false}} {
		on.Store(turn.on)
		_, err := limiter.Take(context.Background(), limit)
		outcome := limiter.TakeEach(context.Background(), limit.WithMax(1<<40).WithCost(0))[0]
		if (err == nil) != turn.admitted || limiter.Enabled() != turn.on || turn.on != (outcome.Err != nil) {
			t.Errorf("%+v: got %v and %+v", turn, err, outcome)
		}
	}
	// Off means off: not even nonsense is an error.
	on.Store(false)
	taken(t, limiter, limit.WithCost(-1))
}

func TestDecision(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	var now atomic.Int64
	now.Store(century.UnixMicro())
	store := runtime.NewMemoryStore()
	store.SetClock(now.Load)
	limiter := runtime.New(store, quiet, runtime.WithNamespace("n"))
	second := &runtime.Rule{Name: "second", Prefix: "s:", Window: time.Second, Max: 2, Message: "slowly"}
	hour := &runtime.Rule{Name: "hour", Prefix: "h:", Window: time.Hour, Max: 3}
	limits := []runtime.Limit{second.Limit(key("k")), hour.Limit(key("k"))}
	for i, want := range []runtime.Decision{
		{Allowed: true, Rule: "second", Limit: 2, Remaining: 1, ResetAfter: time.Second},
		{Allowed: true, Rule: "second", Limit: 2, Remaining: 0, ResetAfter: time.Second},
		{Rule: "second", Limit: 2, Remaining: 0, RetryAfter: 900 * time.Millisecond, ResetAfter: time.Second},
	} {
		now.Add(int64(i%2) * 100_000)
		want.Source = runtime.SourceStore
		d, err := limiter.Take(ctx, limits...)
		if diff := cmp.Diff(want, d, cmpopts.IgnoreUnexported(runtime.Decision{})); diff != "" {
			t.Errorf("call %d (-want +got):\n%s", i, diff)
		}
		if i == 2 && (err == nil || err.Error() != "slowly") {
			t.Errorf("got error %v", err)
		}
	}
	// The error names the limit that keeps the caller out longest.
	now.Add(1_000_000)
	taken(t, limiter, limits...)
	now.Add(1)
	d, err := limiter.Take(ctx, limits[0].WithCost(2), limits[1])
	if err == nil || d.Rule != "hour" || err.Error() != runtime.DefaultMessage {
		t.Errorf("got %+v, %v", d, err)
	}
}
