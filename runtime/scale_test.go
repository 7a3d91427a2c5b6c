package runtime_test

import (
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

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
	eventually(t, "the scaler is heeded", func() bool {
		left(t, limiter, rule.Limit(key("nobody")))
		return limiter.Factor(rule) == want
	})
}

// testScaledMax has every way of counting admit what the factor leaves of the
// max, and more as soon as it goes up, however it was denied before.
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
				d, _ := denied(t, limiter, rule.Limit(key("k")))
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
	rule := &runtime.Rule{Name: "r", Prefix: "r:", Window: time.Hour, Max: 10, Fail: runtime.FailLocal, Adaptive: always(9)}
	override, replicas := overridden(one(runtime.Override{Max: new(int64(60))})), runtime.WithReplicas(2)
	type test struct {
		store  runtime.Store
		opts   []runtime.Option
		limit  runtime.Limit
		want   int
		source runtime.Source
	}
	eachCase(t, map[string]test{
		"overridden": {runtime.NewMemoryStore(), []runtime.Option{override}, rule.Limit(nil), 30, runtime.SourceStore},
		"local":      {&brokenStore{}, []runtime.Option{replicas}, rule.Limit(nil), 2, runtime.SourceLocal},
		"all":        {&brokenStore{}, []runtime.Option{replicas, override}, rule.Limit(nil), 15, runtime.SourceLocal},
		"cap":        {runtime.NewMemoryStore(), []runtime.Option{runtime.WithProcessCap(rule)}, wide.Limit(nil), 5, runtime.SourceProcess},
	}, func(t *testing.T, test test) {
		limiter := runtime.New(test.store, append(test.opts, quiet, runtime.WithScaler(always(0.5)))...)
		defer limiter.Close()
		taken(t, limiter, test.limit) // has the scaler asked, at a factor of 1
		synctest.Wait()
		wantPassing(t, limiter, test.limit, 100, test.want-1)
		if d, _ := denied(t, limiter, test.limit); d.Limit != int64(test.want) || d.Source != test.source {
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
		{0, 1e300, 10, 1, runtime.MaxLog, 0, 0},
		{200, 0.5, 100, 200, 200, 4 * time.Hour, 4 * time.Hour},
		{200, 2, 100, 200, 200, time.Hour, time.Hour},
		{1_000_000_000, 1e-300, 1000, 1_000_000_000, 1_000_000_000, 100 * year, 143 * year},
	} {
		limiter, do := inMemory(), (*runtime.Limiter).Peek
		rule := &runtime.Rule{Name: "r", Prefix: "r:", Window: time.Hour, Max: 10, Burst: test.burst, Adaptive: always(test.factor)}
		if test.burst > 0 {
			rule.Algorithm, rule.Max, do = runtime.TokenBucket, test.max, (*runtime.Limiter).Take
		}
		adapt(t, limiter, rule, test.factor)
		d, err := do(limiter, t.Context(), rule.Limit(key("k")).WithMax(test.max).WithCost(test.cost))
		if err != nil || d.Limit != test.want || test.burst > 0 && (d.ResetAfter < test.fastest-time.Second || d.ResetAfter > test.slowest) {
			t.Errorf("%+v: got %+v, %v", test, d, err)
		}
		limiter.Close()
	}
}

// TestScaling tells the observer of every factor, asks once a second and makes
// nothing of what a scaler must not say.
func TestScaling(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var seen []any
		answer, loads := 0.5, []float64(nil)
		rule := &runtime.Rule{Name: "r", Prefix: "r:", Window: time.Second, Max: 100, Adaptive: always(9)}
		scaler := scalerFunc(func(l runtime.Load) float64 {
			if l.Rule != rule || l.Latency != 0 || l.Usual != 0 {
				t.Errorf("told of %+v", l)
			}
			loads = append(loads, l.Factor)
			if answer == 13 {
				panic("unlucky")
			}
			return answer
		})
		limiter := inMemory(runtime.WithScaler(scaler), observing(runtime.Observer{
			Scale: func(e runtime.ScaleEvent) { seen = append(seen, e) },
			Panic: func(e runtime.PanicEvent) { seen = append(seen, e) },
		}))
		defer limiter.Close()
		look := func() {
			before := limiter.Factor(rule)
			d := taken(t, limiter, rule.Limit(nil))
			synctest.Wait()
			// The call may have the scaler asked, and go by what it says already.
			if after := limiter.Factor(rule); d.Limit != int64(100*before) && d.Limit != int64(100*after) {
				t.Fatalf("a limit of %d at a factor of %v, then %v", d.Limit, before, after)
			}
		}
		for _, answer = range []float64{0.5, 0.5, math.NaN(), 0.25, 0, 2, -1, 0.5, math.Inf(1), 0.75, 13} {
			for range 5 {
				look()
			}
			time.Sleep(time.Second)
		}
		scale := func(f float64) any { return runtime.ScaleEvent{Rule: "r", Factor: f} }
		want := []any{scale(0.5), scale(1), scale(0.25), scale(1), scale(2), scale(1), scale(0.5), scale(1), scale(0.75), runtime.PanicEvent{In: "scaler"}, scale(1)}
		same(t, "observer", want, seen)
		if want := []float64{1, 0.5, 0.5, 1, 0.25, 1, 2, 1, 0.5, 1, 0.75}; !slices.Equal(loads, want) {
			t.Errorf("asked with factors %v, want %v", loads, want)
		}
		equal(t, "factor after a panic", limiter.Factor(rule), 1)
		limiter.Close()
		look()
		equal(t, "questions, none of them after Close", len(loads), 11)
	})
}

// TestHungScaler keeps a scaler that gives no answer from being asked again,
// and from holding up a call or Close.
func TestHungScaler(t *testing.T) {
	bubble(t, func(t *testing.T) {
		asked, answer := 0, make(chan float64)
		rule := &runtime.Rule{Name: "r", Prefix: "r:", Window: time.Minute, Max: 10}
		rule.Adaptive = scalerFunc(func(runtime.Load) float64 { asked++; return <-answer })
		limiter := inMemory()
		for range 10 {
			taken(t, limiter, rule.Limit(nil))
			equal(t, "factor", limiter.Factor(rule), 1)
			synctest.Wait()
			time.Sleep(2 * time.Second)
		}
		equal(t, "questions at once", asked, 1)
		answer <- 0.5
		synctest.Wait()
		equal(t, "factor", limiter.Factor(rule), 0.5)
		left(t, limiter, rule.Limit(nil)) // has it asked again
		var err error
		if took := elapsed(func() { err = limiter.Close() }); err == nil || took != time.Second {
			t.Errorf("closed after %v: %v", took, err)
		}
		answer <- 0.5
		ok(t, limiter.Close())
	})
}

// TestFactorOf is what a rule's factor is where there is none.
func TestFactorOf(t *testing.T) {
	t.Parallel()
	limiter := runtime.New(nil, quiet)
	for _, r := range []*runtime.Rule{nil, {}, {Adaptive: always(2)}} {
		limiter.Measure(r, time.Now())
		equal(t, "factor", limiter.Factor(r), 1)
	}
}

// TestLatency feeds an adaptive rule with calls and looks at what its scaler is
// told.
func TestLatency(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var load runtime.Load
		rule := &runtime.Rule{Name: "r", Prefix: "r:", Window: time.Second, Max: 1000}
		rule.Adaptive = scalerFunc(func(l runtime.Load) float64 { load = l; return 1 })
		limiter := inMemory()
		defer limiter.Close()
		const ms = time.Millisecond
		usual := time.Duration(-1) // after hours of the same
		type span [2]time.Duration
		whatever := span{0, time.Hour}
		about := func(d time.Duration) span { return span{d - 1, d + 1} }
		for _, step := range []struct {
			name           string
			length         time.Duration
			calls          int // a second
			took           []time.Duration
			latency, usual span // that the scaler is told; {-1, -1} is about as before
		}{
			{"before the first call", 5 * time.Second, 0, nil, span{}, span{}},
			{"the first call", time.Second, 1, []time.Duration{500 * ms}, span{500 * ms, 500 * ms}, span{500 * ms, 500 * ms}},
			{"after a slow start", 5 * time.Minute, 100, []time.Duration{5 * ms, 15 * ms}, about(10 * ms), span{10 * ms, 40 * ms}},
			{"after hours", 4 * time.Hour, 100, []time.Duration{10 * ms}, about(10 * ms), span{10 * ms, 20 * ms}},
			{"one slow call", time.Second, 1, []time.Duration{100 * ms}, span{10 * ms, 22 * ms}, whatever},
			{"as usual", 30 * time.Second, 100, []time.Duration{10 * ms}, whatever, whatever},
			{"ten seconds of overload", 10 * time.Second, 100, []time.Duration{100 * ms}, span{80 * ms, 100 * ms}, whatever},
			{"an hour of overload", time.Hour, 100, []time.Duration{100 * ms}, about(100 * ms), span{-1, -1}},
			{"over", 20 * time.Second, 100, []time.Duration{10 * ms}, span{10 * ms, 12 * ms}, whatever},
			{"nonsense", time.Second, 2, []time.Duration{-time.Hour, 1 << 62}, whatever, whatever},
			{"after nonsense", 4 * time.Minute, 100, []time.Duration{10 * ms}, about(10 * ms), whatever},
		} {
			for length := step.length; length > 0; length -= time.Second {
				for i := range step.calls {
					began := time.Now().Add(-step.took[i%len(step.took)])
					if step.took[i%len(step.took)] == 1<<62 {
						began = time.Time{} // never started
					}
					limiter.Measure(rule, began)
				}
				time.Sleep(time.Second)
				taken(t, limiter, rule.Limit(nil))
				synctest.Wait()
			}
			if step.usual[0] < 0 {
				step.usual = span{usual, usual + 12*ms}
			}
			between(t, step.name+": latency", load.Latency, step.latency[0], step.latency[1])
			between(t, step.name+": usual latency", load.Usual, step.usual[0], step.usual[1])
			if step.name == "after hours" {
				usual = load.Usual
			}
		}
	})
}
