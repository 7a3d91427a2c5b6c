package runtime_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
	"github.com/rategen/rategen/runtime/wrapper"
)

// always is a scaler that knows one factor only.
type always float64

func (f always) Factor(rule.Load) float64 { return float64(f) }

// A loaded scaler keeps what it was told of rules last.
type loaded struct{ last rule.Load }

func (l *loaded) Factor(last rule.Load) float64 {
	l.last = last
	return 0.5
}

// TestLoad has the limiter's scaler, in place of the rule's, told of the rule and of its calls.
func TestLoad(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := &runtime.Rule{Name: "r", Prefix: "r:", Window: time.Second, Max: 100, Adaptive: always(9)}
		scaler := new(loaded)
		limiter := inMemory(runtime.WithScaler(scaler))
		defer limiter.Close()
		wrapper.Measure(limiter, r, time.Now().Add(-2*time.Second))
		for _, before := range []float64{1, 0.5} {
			left(t, limiter, r.Limit(nil)) // has the scaler asked
			synctest.Wait()
			equal(t, "load", scaler.last, rule.Load{Rule: r, Factor: before, Latency: 2 * time.Second, Usual: 2 * time.Second})
			equal(t, "factor", bridge.LimiterOf(limiter).Factor(r), 0.5)
			time.Sleep(time.Second)
		}
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
