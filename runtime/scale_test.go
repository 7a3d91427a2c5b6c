package runtime_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
	"github.com/rategen/rategen/runtime/wrapper"
)

// A scalerFunc is a function that is a scaler.
type scalerFunc func(rule.Load) float64

func (f scalerFunc) Factor(l rule.Load) float64 { return f(l) }

// always is a scaler that knows one factor only.
func always(factor float64) scalerFunc { return func(rule.Load) float64 { return factor } }

// adapt looks at a rule until its factor is as wanted.
func adapt(t *testing.T, limiter *runtime.Limiter, rule *runtime.Rule, want float64) {
	t.Helper()
	eventually(t, "the scaler is heeded", func() bool {
		left(t, limiter, rule.Limit(key("nobody")))
		return bridge.LimiterOf(limiter).Factor(rule) == want
	})
}

// testScaledMax has every way of counting admit what the factor leaves of the
// max, and more as soon as it goes up, however it was refused before.
func testScaledMax(t *testing.T, replica replicas) {
	for name, rule := range serverRules(time.Hour, 10) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rule.Adaptive = always(1)
			for _, step := range []struct {
				factor float64
				more   int
			}{{0.5, 5}, {1, 5}, {0.5, 0}, {1.5, 5}} {
				limiter := replica(runtime.WithScaler(always(step.factor)))
				adapt(t, limiter, rule, step.factor)
				n := passing(t, limiter, rule.Limit(key("k")), 20)
				d, _ := refused(t, limiter, rule.Limit(key("k")))
				if want := int64(10 * step.factor); n != step.more || d.Limit != want {
					t.Errorf("factor %v: %d more admitted with a limit of %d, want %d and %d", step.factor, n, d.Limit, step.more, want)
				}
			}
		})
	}
}

// TestScaledElsewhere scales a max that is overridden, that a process shares
// with others while there is no store, or that bounds the process.
func TestScaledElsewhere(t *testing.T) {
	r := &runtime.Rule{Name: "r", Prefix: "r:", Window: time.Hour, Max: 10, Fail: runtime.FailLocal, Adaptive: always(9)}
	override, replicas := overridden(overridesOf(rule.Override{Max: new(int64(60))})), runtime.WithReplicas(2)
	type test struct {
		store  runtime.Store
		opts   []runtime.Option
		limit  runtime.Limit
		want   int
		source rule.Source
	}
	eachCase(t, map[string]test{
		"overridden": {runtime.NewMemoryStore(), []runtime.Option{override}, r.Limit(nil), 30, rule.SourceStore},
		"local":      {broken(), []runtime.Option{replicas}, r.Limit(nil), 2, rule.SourceLocal},
		"all":        {broken(), []runtime.Option{replicas, override}, r.Limit(nil), 15, rule.SourceLocal},
		"cap":        {runtime.NewMemoryStore(), []runtime.Option{runtime.WithProcessCap(r)}, wide.Limit(nil), 5, rule.SourceProcess},
	}, func(t *testing.T, test test) {
		limiter := runtime.New(test.store, append(test.opts, quiet, runtime.WithScaler(always(0.5)))...)
		defer limiter.Close()
		taken(t, limiter, test.limit) // has the scaler asked, at a factor of 1
		synctest.Wait()
		wantPassing(t, limiter, test.limit, 100, test.want-1)
		if d, _ := refused(t, limiter, test.limit); d.Limit != int64(test.want) || d.Source != test.source {
			t.Errorf("got %+v, want %d by %v", d, test.want, test.source)
		}
	})
}

// TestScaledBounds scales to the ends of what a max may be, and the rate of a bucket but
// not its burst, as far as the burst still drains.
func TestScaledBounds(t *testing.T) {
	t.Parallel()
	const year = 365 * 24 * time.Hour
	for _, test := range []struct {
		burst            int64 // of a token bucket, or 0 for a log
		factor           float64
		max, cost        int64
		want             int64         // the limit that holds
		fastest, slowest time.Duration // of a bucket's draining
	}{
		{0, 0.5, 10, 1, 5, 0, 0},
		{0, 0.1, 10, 7, 7, 0, 0},   // what could be admitted still can
		{0, 0.1, 5, 7, 5, 0, 0},    // and what could not cannot
		{0, 2, 0, 1, 0, 0, 0},      // nobody is nobody
		{0, 0.5, 100, 1, 50, 0, 0}, // a max of the call's own
		{0, 1e300, 10, 1, rule.MaxLog, 0, 0},
		{200, 0.5, 100, 200, 200, 4 * time.Hour, 4 * time.Hour},
		{200, 2, 100, 200, 200, time.Hour, time.Hour},
		{1_000_000_000, 1e-300, 1000, 1_000_000_000, 1_000_000_000, 100 * year, 143 * year},
	} {
		limiter, do := inMemory(), (*runtime.Limiter).Peek
		r := &runtime.Rule{Name: "r", Prefix: "r:", Window: time.Hour, Max: 10, Burst: test.burst, Adaptive: always(test.factor)}
		if test.burst > 0 {
			r.Algorithm, r.Max, do = runtime.TokenBucket, test.max, (*runtime.Limiter).Take
		}
		adapt(t, limiter, r, test.factor)
		d, err := do(limiter, t.Context(), r.Limit(key("k")).WithMax(test.max).WithCost(test.cost))
		if err != nil || d.Limit != test.want || test.burst > 0 && (d.ResetAfter < test.fastest-time.Second || d.ResetAfter > test.slowest) {
			t.Errorf("%+v: got %+v, %v", test, d, err)
		}
		limiter.Close()
	}
}

// TestScaling has a scaler told of its rule, and observers of what it says, also when it
// panics. Package adapt has when it is asked, and what is made of what it must not say.
func TestScaling(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var seen, want []any
		answer := 0.5
		r := &runtime.Rule{Name: "r", Prefix: "r:", Window: time.Second, Max: 100, Adaptive: always(9)}
		scaler := scalerFunc(func(l rule.Load) float64 {
			seen = append(seen, l)
			if answer == 13 {
				panic("unlucky")
			}
			return answer
		})
		limiter := inMemory(runtime.WithScaler(scaler), observing(observe.Observer{
			Scale: func(e observe.ScaleEvent) { seen = append(seen, e) },
			Panic: func(e observe.PanicEvent) { seen = append(seen, e) },
		}))
		defer limiter.Close()
		wrapper.Measure(limiter, r, time.Now().Add(-2*time.Second))
		load := rule.Load{Rule: r, Factor: 1, Latency: 2 * time.Second, Usual: 2 * time.Second}
		scale := func(f float64) any { return observe.ScaleEvent{Rule: "r", Factor: f} }
		for _, answer = range []float64{0.5, 0.75, 13} {
			left(t, limiter, r.Limit(nil)) // has the scaler asked
			synctest.Wait()
			want = append(want, load)
			load.Factor = answer
			if answer == 13 {
				want, load.Factor = append(want, observe.PanicEvent{In: "scaler"}), 1
			}
			want = append(want, scale(load.Factor))
			equal(t, "factor", bridge.LimiterOf(limiter).Factor(r), load.Factor)
			equal(t, "limit", taken(t, limiter, r.Limit(nil)).Limit, int64(100*load.Factor))
			time.Sleep(time.Second)
		}
		same(t, "told", want, seen, cmp.Comparer(func(a, b *runtime.Rule) bool { return a == b }))
	})
}

// TestHungScaler has a scaler that gives no answer hold up no call, and Close for a second.
func TestHungScaler(t *testing.T) {
	bubble(t, func(t *testing.T) {
		answer, limiter := make(chan float64), inMemory()
		r := &runtime.Rule{Name: "r", Prefix: "r:", Window: time.Minute, Max: 10}
		r.Adaptive = scalerFunc(func(rule.Load) float64 { return <-answer })
		equal(t, "limit", taken(t, limiter, r.Limit(nil)).Limit, 10)
		synctest.Wait()
		var err error
		if took := elapsed(func() { err = limiter.Close() }); err == nil || took != time.Second {
			t.Errorf("closed after %v: %v", took, err)
		}
		close(answer)
		ok(t, limiter.Close())
	})
}

// TestFactorOf is what a rule's factor is where there is none.
func TestFactorOf(t *testing.T) {
	t.Parallel()
	limiter := runtime.New(nil, quiet)
	for _, r := range []*runtime.Rule{nil, {}, {Adaptive: always(2)}} {
		wrapper.Measure(limiter, r, time.Now())
		equal(t, "factor", bridge.LimiterOf(limiter).Factor(r), 1)
	}
}
