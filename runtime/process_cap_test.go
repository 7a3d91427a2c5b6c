package runtime_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
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
		verdict map[runtime.Verdict]int
	}
	process := func(o runtime.Override) runtime.Overrides {
		return runtime.Overrides{Rules: map[string]runtime.Override{"process": o}}
	}
	verdicts := func(admitted, denied int) map[runtime.Verdict]int {
		return map[runtime.Verdict]int{runtime.VerdictAdmitted: admitted, runtime.VerdictDenied: denied}
	}
	eachCase(t, map[string]test{
		"as it is": {runtime.Overrides{}, 3, verdicts(3, 7)},
		"raised":   {process(runtime.Override{Max: new(int64(5))}), 5, verdicts(5, 5)},
		"lowered":  {process(runtime.Override{Max: new(int64(1))}), 1, verdicts(1, 9)},
		"0":        {process(runtime.Override{Max: new(int64(0))}), 0, map[runtime.Verdict]int{runtime.VerdictDenied: 10}},
		"shadow":   {process(runtime.Override{Mode: new(runtime.ModeShadow)}), 10, map[runtime.Verdict]int{runtime.VerdictAdmitted: 3, runtime.VerdictShadowDenied: 7}},
		"off":      {process(runtime.Override{Enabled: new(false)}), 10, map[runtime.Verdict]int{}},
		"all off":  {runtime.Overrides{Enabled: new(false)}, 10, map[runtime.Verdict]int{}},
		"bad":      {runtime.Overrides{Enabled: new(false), Rules: map[string]runtime.Override{"process": {Max: new(int64(runtime.MaxLog + 1))}}}, 3, verdicts(3, 7)},
	}, func(t *testing.T, test test) {
		got := map[runtime.Verdict]int{}
		limiter := capped(runtime.NewMemoryStore(), runtime.SlidingLog, 3, overridden(test.to), observing(runtime.Observer{Decision: func(_ context.Context, ev runtime.DecisionEvent) {
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
			denied(t, limiter, wide.Limit(nil))
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
	refused(t, inMemory(runtime.WithProcessCap(permitRule(1))), runtime.ErrInvalidLimit, wide.Limit(nil))
}
