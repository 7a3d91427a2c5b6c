package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
)

// capped returns a limiter with a cap of max a minute.
func capped(store runtime.Store, algorithm runtime.Algorithm, max int64, opts ...runtime.Option) *runtime.Limiter {
	rule := &runtime.Rule{Name: "process", Window: time.Minute, Max: max, Algorithm: algorithm, Message: "this process is busy"}
	return runtime.New(store, append(opts, quiet, runtime.WithProcessCap(rule))...)
}

// The cap counts all that is let through, whoever calls, by whichever algorithm,
// and whether the store answers or not.
func TestProcessCap(t *testing.T) {
	eachCase(t, map[string]runtime.Store{"memory": runtime.NewMemoryStore(), "broken": &brokenStore{}, "none": nil}, func(t *testing.T, store runtime.Store) {
		for _, algorithm := range algorithms {
			limiter := capped(store, algorithm, 10)
			for window := range int64(2) {
				got := 0
				for i := range int64(30) {
					limit := []*runtime.Rule{wide, narrow}[i%2].Limit(key(fmt.Sprint(algorithm, window, i)))
					if _, err := limiter.Take(context.Background(), limit); err == nil {
						got++
						continue
					}
					d, limited := denied(t, limiter, limit)
					if limited.Rule != "process" || limited.Error() != "this process is busy" || d.RetryAfter <= 0 || d.RetryAfter > 2*time.Minute || d.Source != runtime.SourceProcess || d.Limit != 10 {
						t.Fatalf("got %+v, %v", d, limited)
					}
				}
				equal(t, fmt.Sprint(algorithm, ", window ", window, ": let through"), got, 10)
				time.Sleep(2 * time.Minute)
			}
		}
	})
}

// What is not let through for another reason costs the cap nothing.
func TestProcessCapGivesBack(t *testing.T) {
	closed := *wide
	closed.Fail = runtime.FailClosed
	waits := &runtime.Rule{Name: "waits", Prefix: "waits:", Window: time.Minute, Max: 60, Algorithm: runtime.LeakyBucket, Wait: time.Minute}
	type test struct {
		broken  bool
		ends    time.Duration // when the context of calls does: 0: never
		first   int           // calls that are let through
		refused []runtime.Limit
		err     error
	}
	eachCase(t, map[string]test{
		"denied by its own limit": {first: 1, refused: []runtime.Limit{wide.Limit(nil), narrow.Limit(nil)}, err: runtime.ErrLimited},
		"never to be admitted":    {refused: []runtime.Limit{narrow.Limit(nil).WithCost(2)}, err: runtime.ErrCostExceedsLimit},
		"nonsense":                {refused: []runtime.Limit{narrow.Limit(nil).WithCost(-2)}, err: runtime.ErrInvalidLimit},
		"unavailable":             {broken: true, refused: []runtime.Limit{closed.Limit(nil)}, err: runtime.ErrUnavailable},
		"given up":                {ends: -1, refused: []runtime.Limit{wide.Limit(nil)}, err: context.DeadlineExceeded},
		"no room in a queue":      {ends: time.Millisecond, first: 1, refused: []runtime.Limit{waits.Limit(nil)}, err: runtime.ErrLimited},
	}, func(t *testing.T, test test) {
		for _, algorithm := range algorithms {
			var store runtime.Store = runtime.NewMemoryStore()
			if test.broken {
				store = new(brokenStore)
			}
			limiter := capped(store, algorithm, 4)
			for i := range 20 {
				ctx, cancel := context.Background(), func() {}
				if test.ends != 0 {
					ctx, cancel = context.WithTimeout(ctx, test.ends)
				}
				if _, err := limiter.Take(ctx, test.refused...); i < test.first && err != nil || i >= test.first && !errors.Is(err, test.err) {
					t.Fatalf("%v, call %d: got %v, want %v after %d", algorithm, i, err, test.err, test.first)
				}
				if test.first == 0 {
					wantError(t, fmt.Sprint(algorithm, ", each"), limiter.TakeEach(ctx, test.refused...)[0].Err, test.err)
				}
				cancel()
			}
			wantPassing(t, limiter, wide.Limit(key("other")), 10, 4-test.first)
		}
	})
}

// What nothing else counts the cap counts all the same.
func TestProcessCapCountsEveryCall(t *testing.T) {
	off := *narrow
	off.Name = "r"
	unknown := &runtime.Rule{Name: "unknown", Window: time.Hour, Max: 1, Invalid: runtime.InvalidAdmit}
	eachCase(t, map[string]runtime.Limit{
		"no cost":      narrow.Limit(nil).WithCost(0),
		"invalid key":  unknown.Limit(runtime.NewKey().AddInvalid("req is nil")),
		"switched off": off.Limit(nil),
	}, func(t *testing.T, limit runtime.Limit) {
		limiter := capped(runtime.NewMemoryStore(), runtime.FixedWindow, 3, overridden(overridesOf(runtime.Override{Enabled: new(false)})))
		defer limiter.Close()
		wantPassing(t, limiter, limit, 2, 2)
		for i, out := range limiter.TakeEach(context.Background(), limit, limit, limit) {
			if (out.Err == nil) != (i == 0) || i > 0 && (out.Allowed || out.Source != runtime.SourceProcess) {
				t.Errorf("outcome %d: %+v", i, out)
			}
		}
	})
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
