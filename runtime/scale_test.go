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
