package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
	"github.com/rategen/rategen/runtime/wrapper"
)

type keys = map[string]rule.KeyOverride

func maximum(n int64) rule.KeyOverride { return rule.KeyOverride{Max: &n} }

// A program that makes a rule for every call is served, and fills neither its memory with
// them nor its log.
func TestRulesWithoutEnd(t *testing.T) {
	t.Parallel()
	var out lines
	limiter := runtime.New(broken(), out.Logger(), runtime.WithFailurePolicy(runtime.FailLocal), runtime.WithReplicas(2),
		overridden(overridesOf(rule.Override{Max: new(int64(2))})))
	defer limiter.Close()
	for i := range int64(10_500) {
		r := &runtime.Rule{Name: "r", Window: time.Hour, Max: 10, Algorithm: runtime.FixedWindow, Adaptive: always(1)}
		limit := r.Limit(runtime.NewKey().AddInt(i))
		wrapper.Measure(limiter, r, time.Now())
		wantPassing(t, limiter, limit, 2, 1)
		equal(t, "factor", bridge.LimiterOf(limiter).Factor(r), 1)
	}
	equal(t, "rules are kept in mind", limiter.KnownRules(), 10_000)
	// Each known rule has its two lines, the others share theirs.
	between(t, "lines", strings.Count(out.String(), "\n"), 1, 2*10_000+1000)
}

// A source may change what it has handed out, in its next call.
func TestOverridesAreCopied(t *testing.T) {
	bubble(t, func(t *testing.T) {
		most, turn := new(int64(0)), 0
		rules := map[string]rule.Override{"r": {Max: most}}
		limiter := inMemory(runtime.WithOverrides(runtime.OverrideFunc(func(context.Context) (runtime.Overrides, error) {
			*most = []int64{2, 3, -5, -6, 4, 4}[turn]
			turn++
			return runtime.Overrides{Rules: rules}, nil
		}), time.Second))
		defer limiter.Close()
		for i, want := range []int{2, 3, 3, 3, 4} {
			// A rule that is met for the first time takes its override as it was.
			r := perHour(5)
			wantPassing(t, limiter, r.Limit(key(fmt.Sprint(i))), 10, want)
			time.Sleep(time.Second)
			synctest.Wait()
		}
	})
}

// Overrides come and go while calls are under way, under the race detector.
func TestOverridesRace(t *testing.T) {
	t.Parallel()
	var turn atomic.Int64
	source := runtime.OverrideFunc(func(context.Context) (runtime.Overrides, error) {
		n := turn.Add(1)
		return []runtime.Overrides{
			{}, {Enabled: new(false)}, overridesOf(rule.Override{Enabled: new(false)}), overridesOf(rule.Override{Max: new(int64(-1))}),
			overridesOf(rule.Override{Max: new(n), Window: new(time.Duration(n) * time.Millisecond)}),
		}[n%5], nil
	})
	limiter := inMemory(runtime.WithOverrides(source, time.Millisecond),
		runtime.WithProcessCap(&runtime.Rule{Name: "r", Window: time.Second, Max: 1000, Algorithm: runtime.FixedWindow}))
	r := &runtime.Rule{Name: "r", Window: time.Second, Max: 10, Algorithm: runtime.TokenBucket, Burst: 5}
	concurrently(4, func(int) {
		for i := int64(0); turn.Load() < 100; i++ {
			limit := r.Limit(runtime.NewKey().AddInt(i % 7))
			d, err := limiter.Take(context.Background(), limit)
			if err != nil && !errors.Is(err, runtime.ErrLimited) {
				t.Error(err)
			}
			limiter.TakeEach(context.Background(), limit, limit)
			limiter.Refund(context.Background(), d)
		}
	})
	ok(t, limiter.Close())
}
