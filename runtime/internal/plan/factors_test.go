package plan

import (
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime/rule"
)

// A new factor is made once a second at most, of the last one, and not after Close. What is no
// factor is 1.
func TestFactors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := new(rule.Rule)
		var made, changed []float64
		var answer float64
		f := Factors{
			Make:    func(_ *rule.Rule, last float64, _, _ time.Duration) float64 { made = append(made, last); return answer },
			Changed: func(_ *rule.Rule, factor float64) { changed = append(changed, factor) },
		}
		follow := func() {
			for range 5 {
				if before, got := f.Last(k), f.Follow(k); got != before && got != f.Last(k) {
					t.Errorf("a call goes by %v, between %v and %v", got, before, f.Last(k))
				}
				synctest.Wait()
			}
		}
		for _, answer = range []float64{0.5, 0.5, math.NaN(), 0.25, 0, 2, -1, 0.5, math.Inf(1), 0.75} {
			follow()
			time.Sleep(factorEvery)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		follow()
		if want := []float64{1, 0.5, 0.5, 1, 0.25, 1, 2, 1, 0.5, 1}; !slices.Equal(made, want) {
			t.Errorf("made of %v, want %v", made, want)
		}
		if want := []float64{0.5, 1, 0.25, 1, 2, 1, 0.5, 1, 0.75}; !slices.Equal(changed, want) {
			t.Errorf("changed to %v, want %v", changed, want)
		}
	})
}

// The recent latency follows in seconds, the usual one in hours, and neither a slow start nor
// nonsense moves that for long.
func TestLatency(t *testing.T) {
	const ms = time.Millisecond
	var a Latency
	var now, recent, usual time.Duration
	after := time.Duration(-1) // the usual latency after hours of the same
	type span [2]time.Duration
	whatever := span{0, time.Hour}
	about := func(d time.Duration) span { return span{d - 1, d + 1} }
	for _, step := range []struct {
		name          string
		length        time.Duration
		calls         int // a second
		took          []time.Duration
		recent, usual span // {-1, -1} is about as after hours
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
		for end := now + step.length; now < end; {
			for i := range step.calls {
				a.add(step.took[i%len(step.took)])
			}
			now += time.Second
			recent, usual = a.read(now)
		}
		if step.usual[0] < 0 {
			step.usual = span{after, after + 12*ms}
		}
		if step.name == "after hours" {
			after = usual
		}
		if recent < step.recent[0] || recent > step.recent[1] || usual < step.usual[0] || usual > step.usual[1] {
			t.Errorf("%s: %v and usually %v, want %v and %v", step.name, recent, usual, step.recent, step.usual)
		}
	}
}
