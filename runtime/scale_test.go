package runtime_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// A scalerFunc is a function that is a scaler.
type scalerFunc func(runtime.Load) float64

func (f scalerFunc) Factor(l runtime.Load) float64 { return f(l) }

// always is a scaler that knows one factor only.
func always(factor float64) scalerFunc { return func(runtime.Load) float64 { return factor } }

// adapt looks at a rule until its factor is as wanted.
func adapt(t *testing.T, limiter *runtime.Limiter, rule *runtime.Rule, want float64) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); limiter.Factor(rule) != want; time.Sleep(time.Millisecond) {
		if _, err := limiter.Peek(context.Background(), rule.Limit(key("nobody"))); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(end) {
			t.Fatalf("factor of %s is %v, not %v", rule.Name, limiter.Factor(rule), want)
		}
	}
}

// admitted takes until a call is denied, and returns how many were not and the
// decision on the last.
func admitted(t *testing.T, limiter *runtime.Limiter, limit runtime.Limit) (int64, runtime.Decision) {
	t.Helper()
	for n := int64(0); ; n++ {
		d, err := limiter.Take(context.Background(), limit)
		switch {
		case errors.Is(err, runtime.ErrLimited):
			return n, d
		case err != nil || n > 1000:
			t.Fatal(n, err)
		}
	}
}

// TestScaledMax has every way of counting admit what the factor leaves of the
// max, and more as soon as it goes up, however it was denied before.
func TestScaledMax(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	for storeName, store := range map[string]runtime.Store{
		"memory": runtime.NewMemoryStore(),
		"redis":  runtime.NewRedisStore(client, patient, runtime.WithDenialMemory(time.Hour)),
	} {
		for name, rule := range serverRules(time.Hour, 10) {
			t.Run(storeName+" "+name, func(t *testing.T) {
				t.Parallel()
				rule.Adaptive = always(1)
				for _, step := range []struct {
					factor float64
					more   int64
				}{{0.5, 5}, {1, 5}, {0.5, 0}, {1.5, 5}} {
					limiter := runtime.New(store, quiet, closed, runtime.WithScaler(always(step.factor)))
					defer limiter.Close()
					adapt(t, limiter, rule, step.factor)
					n, d := admitted(t, limiter, rule.Limit(key("k")))
					if want := int64(10 * step.factor); n != step.more || d.Limit != want {
						t.Errorf("factor %v: %d more admitted with a limit of %d, want %d and %d", step.factor, n, d.Limit, step.more, want)
					}
				}
			})
		}
	}
}

// fixed are overrides that never change.
type fixed runtime.Overrides

func (f fixed) Overrides(context.Context) (runtime.Overrides, error) {
	return runtime.Overrides(f), nil
}

// TestScaledElsewhere scales a max that is overridden, that a process shares
// with others while there is no store, or that bounds the process.
func TestScaledElsewhere(t *testing.T) {
	t.Parallel()
	rule := &runtime.Rule{Name: "r", Prefix: "r:", Window: time.Hour, Max: 10, Fail: runtime.FailLocal, Adaptive: always(9)}
	halved := runtime.WithScaler(always(0.5))
	max60 := int64(60)
	overridden := runtime.WithOverrides(fixed{Rules: map[string]runtime.Override{"r": {Max: &max60}}}, 0)
	for name, test := range map[string]struct {
		store  runtime.Store
		opts   []runtime.Option
		limit  runtime.Limit
		want   int64
		source runtime.Source
	}{
		"overridden": {runtime.NewMemoryStore(), []runtime.Option{overridden}, rule.Limit(nil), 30, runtime.SourceStore},
		"local":      {&brokenStore{}, []runtime.Option{runtime.WithReplicas(2)}, rule.Limit(nil), 2, runtime.SourceLocal},
		"all":        {&brokenStore{}, []runtime.Option{runtime.WithReplicas(2), overridden}, rule.Limit(nil), 15, runtime.SourceLocal},
		"cap":        {runtime.NewMemoryStore(), []runtime.Option{runtime.WithProcessCap(rule)}, (&runtime.Rule{Prefix: "s:", Window: time.Hour, Max: 100}).Limit(nil), 5, runtime.SourceProcess},
	} {
		synctest.Test(t, func(t *testing.T) {
			limiter := runtime.New(test.store, append(test.opts, quiet, halved)...)
			defer limiter.Close()
			_, err := limiter.Take(t.Context(), test.limit) // has the scaler asked, at a factor of 1
			synctest.Wait()
			n, d := admitted(t, limiter, test.limit)
			if err != nil || n+1 != test.want || d.Limit != test.want || d.Source != test.source {
				t.Errorf("%s: %v, then %d more admitted and %+v, want %d by %v", name, err, n, d, test.want, test.source)
			}
		})
	}
}

// TestScaledTrip has calls with another factor each share a trip.
func TestScaledTrip(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	store := runtime.NewRedisStore(server.Client(t), patient)
	for name, rule := range serverRules(time.Hour, 10) {
		rule.Adaptive = always(1)
		var limiters [2]*runtime.Limiter
		for i, factor := range []float64{0.5, 1.5} {
			limiters[i] = runtime.New(store, quiet, closed, runtime.WithScaler(always(factor)))
			defer limiters[i].Close()
			adapt(t, limiters[i], rule, factor)
		}
		var passed atomic.Int64
		var wait sync.WaitGroup
		server.Pause()
		for i := range 40 {
			wait.Go(func() {
				d, err := limiters[i%2].Take(context.Background(), rule.Limit(key("k")))
				if err == nil {
					passed.Add(1)
				} else if !errors.Is(err, runtime.ErrLimited) {
					t.Errorf("%s: %v", name, err)
				}
				if want := int64(5 + 10*(i%2)); d.Limit != want {
					t.Errorf("%s: a limit of %d, want %d", name, d.Limit, want)
				}
			})
		}
		server.Resume()
		wait.Wait()
		if n := passed.Load(); n != 15 {
			t.Errorf("%s: %d passed, want the 15 of the larger factor", name, n)
		}
	}
}

// TestScaledBounds scales to the ends of what a max may be.
func TestScaledBounds(t *testing.T) {
	t.Parallel()
	logged := runtime.Rule{Name: "r", Window: time.Hour, Max: 10}
	for _, test := range []struct {
		rule      runtime.Rule
		factor    float64
		max, cost int64
		want      int64 // the limit that holds
	}{
		{logged, 0.5, 10, 1, 5},
		{logged, 1.26, 10, 1, 13},
		{logged, 1e-300, 10, 1, 1},
		{logged, 0.1, 10, 7, 7},   // what could be admitted still can
		{logged, 0.1, 5, 7, 5},    // and what could not cannot
		{logged, 2, 0, 1, 0},      // nobody is nobody
		{logged, 0.5, 100, 1, 50}, // a max of the call's own
		{logged, 1e300, 10, 1, runtime.MaxLog},
	} {
		rule := test.rule
		rule.Name, rule.Prefix, rule.Adaptive = "r", "r:", always(test.factor)
		limiter := runtime.New(runtime.NewMemoryStore(), quiet)
		adapt(t, limiter, &rule, test.factor)
		d, err := limiter.Peek(context.Background(), rule.Limit(key("k")).WithMax(test.max).WithCost(test.cost))
		if err != nil || d.Limit != test.want {
			t.Errorf("%+v: got %+v, %v", test, d, err)
		}
		limiter.Close()
	}
}

// TestScaledBurst scales the rate of a bucket and not its burst, as far as the
// burst still drains.
func TestScaledBurst(t *testing.T) {
	t.Parallel()
	const year = 365 * 24 * time.Hour
	for _, test := range []struct {
		burst       int64
		factor      float64
		short, long time.Duration // between which the bucket drains
	}{
		{200, 0.5, 4 * time.Hour, 4 * time.Hour},
		{200, 2, time.Hour, time.Hour},
		{1_000_000_000, 1e-300, 100 * year, 143 * year},
	} {
		rule := &runtime.Rule{Name: "r", Prefix: "r:", Window: time.Hour, Max: 1000, Burst: test.burst, Algorithm: runtime.TokenBucket}
		if test.burst == 200 {
			rule.Max = 100
		}
		rule.Adaptive = always(test.factor)
		limiter := runtime.New(runtime.NewMemoryStore(), quiet)
		adapt(t, limiter, rule, test.factor)
		d, err := limiter.Take(context.Background(), rule.Limit(key("k")).WithCost(test.burst))
		if err != nil || d.Limit != test.burst || d.ResetAfter < test.short-time.Second || d.ResetAfter > test.long {
			t.Errorf("%+v: got %+v, %v", test, d, err)
		}
		limiter.Close()
	}
}
