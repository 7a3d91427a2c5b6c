package runtime_test

import (
	"errors"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
)

// TestLogCost refuses what would be too much work for Redis, and nothing else.
func TestLogCost(t *testing.T) {
	t.Parallel()
	const most = runtime.MaxLogCost
	log := runtime.Rule{Name: "r", Prefix: "r:", Window: time.Hour, Max: 10 * most}
	with := func(change func(*runtime.Rule)) *runtime.Rule {
		rule := log
		change(&rule)
		return &rule
	}
	small := with(func(r *runtime.Rule) { r.Max = most })
	for name, test := range map[string]struct {
		limit runtime.Limit
		want  error
	}{
		"the most":            {log.Limit(nil).WithCost(most), nil},
		"one more":            {log.Limit(nil).WithCost(most + 1), runtime.ErrInvalidLimit},
		"all of it":           {log.Limit(nil).WithCost(10 * most), runtime.ErrInvalidLimit},
		"more than all of it": {log.Limit(nil).WithCost(10*most + 1), runtime.ErrCostExceedsLimit},
		"more than a max":     {small.Limit(nil).WithCost(most + 1), runtime.ErrCostExceedsLimit},
		"a max of the call's": {small.Limit(nil).WithMax(most + 1).WithCost(most + 1), runtime.ErrInvalidLimit},
		"a max of 0":          {log.Limit(nil).WithMax(0).WithCost(most + 1), runtime.ErrCostExceedsLimit},
		"packed":              {with(func(r *runtime.Rule) { r.Storage = runtime.StoragePacked }).Limit(nil).WithCost(most + 1), runtime.ErrInvalidLimit},
		"slices":              {with(func(r *runtime.Rule) { r.Resolution = time.Second }).Limit(nil).WithCost(most + 1), runtime.ErrInvalidLimit},
		// A limit in the shadow is left out, and harms no call.
		"shadow":          {with(func(r *runtime.Rule) { r.Mode = runtime.ModeShadow }).Limit(nil).WithCost(most + 1), nil},
		"adaptive":        {with(func(r *runtime.Rule) { r.Adaptive = always(0.5) }).Limit(nil).WithCost(most + 1), runtime.ErrInvalidLimit},
		"counter":         {with(func(r *runtime.Rule) { r.Algorithm = runtime.SlidingCounter }).Limit(nil).WithCost(10 * most), nil},
		"layered counter": {with(func(r *runtime.Rule) { r.Algorithm, r.Buckets = runtime.SlidingCounter, runtime.LayeredBuckets(2, 2) }).Limit(nil).WithCost(10 * most), nil},
		"fixed window":    {with(func(r *runtime.Rule) { r.Algorithm = runtime.FixedWindow }).Limit(nil).WithCost(10 * most), nil},
		"bucket":          {with(func(r *runtime.Rule) { r.Algorithm = runtime.TokenBucket }).Limit(nil).WithCost(10 * most), nil},
		"queue":           {with(func(r *runtime.Rule) { r.Algorithm, r.Wait = runtime.LeakyBucket, time.Second }).Limit(nil).WithCost(10 * most), nil},
	} {
		limiter := inMemory()
		if _, err := limiter.Peek(t.Context(), test.limit); !errors.Is(err, test.want) && !errors.Is(test.want, runtime.ErrCostExceedsLimit) && name != "shadow" {
			t.Errorf("%s: peek: got %v, want %v", name, err, test.want)
		}
		if d, err := limiter.Take(t.Context(), test.limit); !errors.Is(err, test.want) || (err == nil) != d.Allowed {
			t.Errorf("%s: got %+v, %v, want %v", name, d, err, test.want)
		}
		limiter = inMemory()
		if o := limiter.TakeEach(t.Context(), test.limit)[0]; !errors.Is(o.Err, test.want) || (o.Err == nil) != o.Allowed {
			t.Errorf("%s, in a batch: got %+v, want %v", name, o, test.want)
		}
	}

	limiter := inMemory()
	_, err := limiter.Take(t.Context(), log.Limit(nil).WithMax(5000).WithCost(5000))
	const want = `invalid rate limit: rule "r": cost 5000 is above 250, the most that one call may charge to a sliding-log: ` +
		`count with a sliding-counter or a token-bucket, or charge it in several calls`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestLogCostOfScaled refuses a cost that fits only since the max was scaled up.
func TestLogCostOfScaled(t *testing.T) {
	t.Parallel()
	rule := &runtime.Rule{Name: "r", Prefix: "r:", Window: time.Hour, Max: runtime.MaxLogCost, Adaptive: always(2)}
	limiter := inMemory()
	defer limiter.Close()
	limit := rule.Limit(nil).WithCost(runtime.MaxLogCost + 1)
	if _, err := limiter.Take(t.Context(), limit); !errors.Is(err, runtime.ErrCostExceedsLimit) {
		t.Errorf("before it is scaled: got %v", err)
	}
	adapt(t, limiter, rule, 2)
	if _, err := limiter.Take(t.Context(), limit); !errors.Is(err, runtime.ErrInvalidLimit) {
		t.Errorf("scaled: got %v", err)
	}
}
