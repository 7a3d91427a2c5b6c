package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
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
	t.Parallel()
	for _, algorithm := range []runtime.Algorithm{runtime.SlidingLog, runtime.SlidingCounter, runtime.FixedWindow, runtime.TokenBucket, runtime.LeakyBucket} {
		for name, store := range map[string]runtime.Store{"memory": runtime.NewMemoryStore(), "broken": &brokenStore{}, "none": nil} {
			t.Run(fmt.Sprint(algorithm, " ", name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					limiter := capped(store, algorithm, 10)
					for window := range int64(2) {
						got := 0
						for i := range int64(30) {
							rule := narrow
							if i%2 == 0 {
								rule = wide
							}
							d, err := limiter.Take(context.Background(), rule.Limit(runtime.NewKey().AddInt(window*100+i)))
							if err == nil {
								got++
								continue
							}
							var limited *runtime.LimitedError
							if !errors.As(err, &limited) || limited.Rule != "process" || limited.Error() != "this process is busy" || limited.RetryAfter <= 0 || limited.RetryAfter > 2*time.Minute {
								t.Fatalf("got %v, %+v", err, limited)
							}
							if d.Source != runtime.SourceProcess || d.Allowed || d.Limit != 10 {
								t.Fatalf("got %+v", d)
							}
						}
						if got != 10 {
							t.Errorf("window %d: %d let through, want 10", window, got)
						}
						time.Sleep(2 * time.Minute)
					}
				})
			})
		}
	}
}

// What is not let through for another reason costs the cap nothing.
func TestProcessCapGivesBack(t *testing.T) {
	t.Parallel()
	ended, end := context.WithCancel(context.Background())
	end()
	closed := *wide
	closed.Fail = runtime.FailClosed
	waits := &runtime.Rule{Name: "waits", Prefix: "waits:", Window: time.Minute, Max: 60, Algorithm: runtime.LeakyBucket, Wait: time.Minute}
	memory := func() runtime.Store { return runtime.NewMemoryStore() }
	broken := func() runtime.Store { return &brokenStore{} }
	for _, test := range []struct {
		name    string
		ctx     context.Context // nil: one that ends soon
		store   func() runtime.Store
		first   int // calls that are let through
		refused []runtime.Limit
		err     error
	}{
		{"denied by its own limit", context.Background(), memory, 1, []runtime.Limit{wide.Limit(nil), narrow.Limit(nil)}, runtime.ErrLimited},
		{"never to be admitted", context.Background(), memory, 0, []runtime.Limit{narrow.Limit(nil).WithCost(2)}, runtime.ErrCostExceedsLimit},
		{"nonsense", context.Background(), memory, 0, []runtime.Limit{narrow.Limit(nil).WithCost(-2)}, runtime.ErrInvalidLimit},
		{"unavailable", context.Background(), broken, 0, []runtime.Limit{closed.Limit(nil)}, runtime.ErrUnavailable},
		{"given up", ended, memory, 0, []runtime.Limit{wide.Limit(nil)}, context.Canceled},
		{"no room in a queue", nil, memory, 1, []runtime.Limit{waits.Limit(nil)}, runtime.ErrLimited},
	} {
		for _, algorithm := range []runtime.Algorithm{runtime.SlidingLog, runtime.SlidingCounter, runtime.FixedWindow, runtime.TokenBucket} {
			t.Run(fmt.Sprint(test.name, " ", algorithm), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					limiter := capped(test.store(), algorithm, 4)
					for i := range 20 {
						ctx := test.ctx
						if ctx == nil {
							var cancel context.CancelFunc
							ctx, cancel = context.WithTimeout(context.Background(), time.Millisecond)
							defer cancel()
						}
						if _, err := limiter.Take(ctx, test.refused...); i < test.first && err != nil || i >= test.first && !errors.Is(err, test.err) {
							t.Fatalf("call %d: got %v, want %v after %d", i, err, test.err, test.first)
						}
						if len(test.refused) > 1 || test.ctx == nil {
							continue
						}
						if out := limiter.TakeEach(ctx, test.refused...)[0]; !errors.Is(out.Err, test.err) {
							t.Fatalf("each: got %v, want %v", out.Err, test.err)
						}
					}
					wantPassing(t, limiter, wide.Limit(key("other")), 10, 4-test.first)
				})
			})
		}
	}
}

// What nothing else counts the cap counts all the same.
func TestProcessCapCountsEveryCall(t *testing.T) {
	t.Parallel()
	limiter := func() *runtime.Limiter {
		return capped(runtime.NewMemoryStore(), runtime.FixedWindow, 3, runtime.WithOverrides(new(board), time.Hour))
	}
	source := new(board)
	source.set(runtime.Overrides{Rules: map[string]runtime.Override{"narrow": {Enabled: new(false)}}}, nil)
	for name, test := range map[string]struct {
		limiter *runtime.Limiter
		limit   runtime.Limit
	}{
		"no cost":      {limiter(), narrow.Limit(nil).WithCost(0)},
		"invalid key":  {limiter(), narrow.Limit(runtime.NewKey().AddInvalid("req is nil"))},
		"switched off": {capped(runtime.NewMemoryStore(), runtime.FixedWindow, 3, runtime.WithOverrides(source, time.Hour)), narrow.Limit(nil)},
	} {
		t.Run(name, func(t *testing.T) {
			defer test.limiter.Close()
			equal(t, "of 2 let through", passing(t, test.limiter, test.limit, 2), 2)
			got := 0
			for _, out := range test.limiter.TakeEach(context.Background(), test.limit, test.limit, test.limit) {
				if out.Err == nil {
					got++
				} else if out.Allowed || out.Source != runtime.SourceProcess {
					t.Errorf("got %+v", out)
				}
			}
			if got != 1 {
				t.Errorf("%d of the rest let through, want 1", got)
			}
		})
	}
}

// A cap is switched, changed and tried like any rule.
func TestProcessCapChanged(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		to   runtime.Overrides
		want int
	}{
		{"as it is", runtime.Overrides{}, 3},
		{"raised", runtime.Overrides{Rules: map[string]runtime.Override{"process": {Max: new(int64(5))}}}, 5},
		{"lowered", runtime.Overrides{Rules: map[string]runtime.Override{"process": {Max: new(int64(1))}}}, 1},
		{"0", runtime.Overrides{Rules: map[string]runtime.Override{"process": {Max: new(int64(0))}}}, 0},
		{"shadow", runtime.Overrides{Rules: map[string]runtime.Override{"process": {Mode: new(runtime.ModeShadow)}}}, 10},
		{"off", runtime.Overrides{Rules: map[string]runtime.Override{"process": {Enabled: new(false)}}}, 10},
		{"all off", runtime.Overrides{Enabled: new(false)}, 10},
	} {
		t.Run(test.name, func(t *testing.T) {
			source := new(board)
			source.set(test.to, nil)
			var verdicts recorder[runtime.Verdict]
			limiter := capped(runtime.NewMemoryStore(), runtime.SlidingLog, 3, runtime.WithOverrides(source, time.Hour),
				observing(runtime.Observer{Decision: func(_ context.Context, ev runtime.DecisionEvent) {
					if ev.Rule == "process" {
						verdicts.add(ev.Verdict)
					}
				}}))
			defer limiter.Close()
			wantPassing(t, limiter, wide.Limit(nil), 10, test.want)
			counts := map[runtime.Verdict]int{}
			for _, v := range verdicts.all() {
				counts[v]++
			}
			if test.name == "shadow" && (counts[runtime.VerdictAdmitted] != 3 || counts[runtime.VerdictShadowDenied] != 7) {
				t.Errorf("told %v", counts)
			}
			if want := 10 - test.want; test.want < 10 && counts[runtime.VerdictDenied] != want {
				t.Errorf("told %v, want %d denied", counts, want)
			}
		})
	}
	// A bad override of the cap is refused at once, for it is known.
	source := new(board)
	source.set(runtime.Overrides{Enabled: new(false), Rules: map[string]runtime.Override{"process": {Max: new(int64(runtime.MaxLog + 1))}}}, nil)
	limiter := capped(runtime.NewMemoryStore(), runtime.SlidingLog, 3, runtime.WithOverrides(source, time.Hour))
	defer limiter.Close()
	if !limiter.Enabled() {
		t.Error("part of a bad override is in force")
	}
}

// A cap of a queue's rule does not wait, and a refund is of the call's own
// limits.
func TestProcessCapOfQueue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		limiter := inMemory(runtime.WithProcessCap(&runtime.Rule{
			Name: "process", Window: time.Minute, Max: 4, Algorithm: runtime.LeakyBucket, Wait: time.Hour,
		}))
		begin, got := time.Now(), 0
		for range 10 {
			limit := wide.Limit(nil)
			d, err := limiter.Take(t.Context(), limit)
			if err == nil {
				got++
			}
			refunded(t, limiter, d)
		}
		if took := time.Since(begin); took != 0 || got != 4 {
			t.Errorf("%d let through after %v, want 4 at once", got, took)
		}
	})
}

// What can never be admitted is told so, and not to come back soon, also when
// the cap has no room.
func TestProcessCapBesideNever(t *testing.T) {
	t.Parallel()
	limiter := capped(runtime.NewMemoryStore(), runtime.FixedWindow, 1)
	passing(t, limiter, wide.Limit(nil), 2)
	never := narrow.Limit(nil).WithCost(2)
	if d, err := limiter.Take(context.Background(), never); !errors.Is(err, runtime.ErrCostExceedsLimit) || d.Rule != "narrow" {
		t.Errorf("got %+v, %v", d, err)
	}
	if out := limiter.TakeEach(context.Background(), never)[0]; !errors.Is(out.Err, runtime.ErrCostExceedsLimit) || out.Rule != "narrow" {
		t.Errorf("each: got %+v", out)
	}
}

// Nil is no cap, and permits, which nothing would return, cannot be one.
func TestProcessCapNone(t *testing.T) {
	t.Parallel()
	wantPassing(t, inMemory(runtime.WithProcessCap(nil)), wide.Limit(nil), 10, 10)
	if _, err := inMemory(runtime.WithProcessCap(permitRule(1))).Take(t.Context(), wide.Limit(nil)); !errors.Is(err, runtime.ErrInvalidLimit) {
		t.Errorf("a cap of permits: %v", err)
	}
}
