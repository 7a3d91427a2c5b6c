package directive

import (
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
)

// TestBounds compares the bounds that a directive is held to with those of the
// runtime, which the generator does not import.
func TestBounds(t *testing.T) {
	for name, bound := range map[string]struct{ got, want int64 }{
		"max of a log":             {MostOf(SlidingLog), runtime.MaxLog},
		"max in flight":            {MostOf(Concurrency), runtime.MaxLog},
		"permits of a call":        {MostCost(Concurrency), runtime.MaxLogCost},
		"max of the others":        {MostOf(fixedWindow), runtime.MaxCount},
		"cost of a log":            {MostCost(SlidingLog), runtime.MaxLogCost},
		"cost of the others":       {MostCost(tokenBucket), runtime.MaxCount},
		"limits":                   {MaxLimits, runtime.MaxLimits},
		"window":                   {int64(maxWindow), int64(runtime.MaxWindow)},
		"the shortest window's ms": {int64(shortestWindow(t)), int64(runtime.MinWindow)},
	} {
		if bound.got != bound.want {
			t.Errorf("%s: %d here, %d in the runtime", name, bound.got, bound.want)
		}
	}
}

// TestBoundsInUse has the runtime take the largest numbers of a directive, and
// refuse larger ones.
func TestBoundsInUse(t *testing.T) {
	limiter := runtime.New(runtime.NewMemoryStore())
	for _, over := range []int64{0, 1} {
		for name, limit := range map[string]runtime.Limit{
			"log":       (&runtime.Rule{Name: "r", Window: maxWindow, Max: maxLog + over}).Limit(nil),
			"log cost":  (&runtime.Rule{Name: "r", Window: maxWindow, Max: maxLog}).Limit(nil).WithCost(maxLogCost + over),
			"counter":   (&runtime.Rule{Name: "r", Window: maxWindow, Max: maxCount + over, Algorithm: runtime.FixedWindow}).Limit(nil).WithCost(maxCount + over),
			"buckets":   (&runtime.Rule{Name: "r", Window: maxWindow, Max: 5, Algorithm: runtime.SlidingCounter, Buckets: runtime.EqualBuckets(maxBuckets + int(over))}).Limit(nil),
			"the burst": (&runtime.Rule{Name: "r", Window: time.Second, Max: maxCount, Burst: maxCount + over, Algorithm: runtime.TokenBucket}).Limit(nil),
		} {
			if _, err := limiter.Take(t.Context(), limit); (err != nil) != (over > 0) {
				t.Errorf("%s, %d above the bound: %v", name, over, err)
			}
		}
	}
}

// shortestWindow returns the shortest time that window= takes.
func shortestWindow(t *testing.T) time.Duration {
	t.Helper()
	parse := optionNamed("window").constant.parse
	if _, err := parse(Value{Text: "999us"}); err == nil {
		t.Error("window=999us is taken")
	}
	got, err := parse(Value{Text: "1ms"})
	if err != nil {
		t.Fatal(err)
	}
	return got.(time.Duration)
}
