package runtime_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// capped returns a limiter with a cap of max a minute.
func capped(store runtime.Store, algorithm runtime.Algorithm, max int64, opts ...runtime.Option) *runtime.Limiter {
	rule := &runtime.Rule{Name: "process", Window: time.Minute, Max: max, Algorithm: algorithm, Message: "this process is busy"}
	return runtime.New(store, append(opts, quiet, runtime.WithProcessCap(rule))...)
}

// A cap is switched, changed and tried like any rule. A bad override of it is refused at
// once, for it is known.
func TestProcessCapChanged(t *testing.T) {
	type test struct {
		to      runtime.Overrides
		want    int
		verdict map[observe.Verdict]int
	}
	process := func(o rule.Override) runtime.Overrides {
		return runtime.Overrides{Rules: map[string]rule.Override{"process": o}}
	}
	verdicts := func(admitted, refused int) map[observe.Verdict]int {
		return map[observe.Verdict]int{observe.VerdictAdmitted: admitted, observe.VerdictRefused: refused}
	}
	eachCase(t, map[string]test{
		"as it is": {runtime.Overrides{}, 3, verdicts(3, 7)},
		"raised":   {process(rule.Override{Max: new(int64(5))}), 5, verdicts(5, 5)},
		"lowered":  {process(rule.Override{Max: new(int64(1))}), 1, verdicts(1, 9)},
		"0":        {process(rule.Override{Max: new(int64(0))}), 0, map[observe.Verdict]int{observe.VerdictRefused: 10}},
		"shadow":   {process(rule.Override{Mode: new(runtime.ModeShadow)}), 10, map[observe.Verdict]int{observe.VerdictAdmitted: 3, observe.VerdictShadowRefused: 7}},
		"off":      {process(rule.Override{Enabled: new(false)}), 10, map[observe.Verdict]int{}},
		"all off":  {runtime.Overrides{Enabled: new(false)}, 10, map[observe.Verdict]int{}},
		"bad":      {runtime.Overrides{Enabled: new(false), Rules: map[string]rule.Override{"process": {Max: new(int64(rule.MaxLog + 1))}}}, 3, verdicts(3, 7)},
	}, func(t *testing.T, test test) {
		got := map[observe.Verdict]int{}
		limiter := capped(runtime.NewMemoryStore(), runtime.SlidingLog, 3, overridden(test.to), observing(observe.Observer{Decision: func(_ context.Context, ev observe.DecisionEvent) {
			if ev.Rule == "process" {
				got[ev.Verdict]++
			}
		}}))
		defer limiter.Close()
		wantPassing(t, limiter, wide.Limit(nil), 10, test.want)
		same(t, "verdicts", test.verdict, got)
	})
}

// A cap of a queue's rule does not wait, and a refund is of the call's own limits.
func TestProcessCapOfQueue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		limiter := inMemory(runtime.WithProcessCap(&runtime.Rule{Name: "process", Window: time.Minute, Max: 4, Algorithm: runtime.LeakyBucket, Wait: time.Hour}))
		equal(t, "waited", elapsed(func() {
			for range 4 {
				refunded(t, limiter, taken(t, limiter, wide.Limit(nil)))
			}
			refused(t, limiter, wide.Limit(nil))
		}), 0)
	})
}

// What can never be admitted is told so, and not to come back soon, also when
// the cap has no room.
func TestProcessCapBesideNever(t *testing.T) {
	t.Parallel()
	limiter := capped(runtime.NewMemoryStore(), runtime.FixedWindow, 1)
	passing(t, limiter, wide.Limit(nil), 2)
	bursts := *narrow
	bursts.Algorithm, bursts.Burst = runtime.TokenBucket, 4
	for _, never := range []runtime.Limit{narrow.Limit(nil).WithCost(2), bursts.Limit(nil).WithMax(0)} {
		if d, err := limiter.Take(context.Background(), never); !errors.Is(err, runtime.ErrLimited) || d.Rule != "narrow" || d.RetryAfter != runtime.Never {
			t.Errorf("got %+v, %v", d, err)
		}
		if out := limiter.TakeEach(context.Background(), never)[0]; !errors.Is(out.Err, runtime.ErrLimited) || out.Rule != "narrow" || out.RetryAfter != runtime.Never {
			t.Errorf("each: got %+v", out)
		}
	}
}

// Nil is no cap, and permits, which nothing would return, cannot be one.
func TestProcessCapNone(t *testing.T) {
	t.Parallel()
	wantPassing(t, inMemory(runtime.WithProcessCap(nil)), wide.Limit(nil), 10, 10)
	refusedAs(t, inMemory(runtime.WithProcessCap(permitRule(1))), runtime.ErrInvalidLimit, wide.Limit(nil))
}
