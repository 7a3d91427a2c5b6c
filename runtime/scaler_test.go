package runtime_test

import (
	"context"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/runtime"
)

// TestScaling tells the observer of every factor, asks once a second and makes
// nothing of what a scaler must not say.
func TestScaling(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var told []any
		observer := &runtime.Observer{
			Scale: func(e runtime.ScaleEvent) { told = append(told, e) },
			Panic: func(e runtime.PanicEvent) { told = append(told, e) },
		}
		says, loads := 0.5, []float64(nil)
		rule := &runtime.Rule{Name: "r", Prefix: "r:", Window: time.Second, Max: 100, Adaptive: always(9)}
		scaler := scalerFunc(func(l runtime.Load) float64 {
			if l.Rule != rule || l.Latency != 0 || l.Usual != 0 {
				t.Errorf("told of %+v", l)
			}
			loads = append(loads, l.Factor)
			if says == 13 {
				panic("unlucky")
			}
			return says
		})
		limiter := runtime.New(runtime.NewMemoryStore(), quiet, runtime.WithObserver(observer), runtime.WithScaler(scaler))
		defer limiter.Close()
		look := func() {
			before := int64(100 * limiter.Factor(rule))
			d, err := limiter.Take(t.Context(), rule.Limit(nil))
			synctest.Wait()
			// The call may have the scaler asked, and go by what it says already.
			if after := int64(100 * limiter.Factor(rule)); err != nil || d.Limit != before && d.Limit != after {
				t.Fatalf("a limit of %d, want %d or %d: %v", d.Limit, before, after, err)
			}
		}
		for _, says = range []float64{0.5, 0.5, math.NaN(), 0.25, 0, 2, -1, 0.5, math.Inf(1), 0.75, 13} {
			for range 5 {
				look()
			}
			time.Sleep(time.Second)
		}
		scale := func(f float64) any { return runtime.ScaleEvent{Rule: "r", Factor: f} }
		want := []any{scale(0.5), scale(1), scale(0.25), scale(1), scale(2), scale(1), scale(0.5), scale(1), scale(0.75), runtime.PanicEvent{In: "scaler"}, scale(1)}
		if diff := cmp.Diff(want, told); diff != "" {
			t.Errorf("observer (-want +got):\n%s", diff)
		}
		if want := []float64{1, 0.5, 0.5, 1, 0.25, 1, 2, 1, 0.5, 1, 0.75}; !slices.Equal(loads, want) {
			t.Errorf("asked with factors %v, want %v", loads, want)
		}
		if f := limiter.Factor(rule); f != 1 {
			t.Errorf("factor %v after a panic", f)
		}
		limiter.Close()
		look()
		if len(loads) != 11 {
			t.Error("asked after Close")
		}
	})
}

// TestHungScaler keeps a scaler that gives no answer from being asked again,
// and from holding up a call.
func TestHungScaler(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked, answer := 0, make(chan float64)
		rule := &runtime.Rule{Name: "r", Prefix: "r:", Window: time.Minute, Max: 10}
		rule.Adaptive = scalerFunc(func(runtime.Load) float64 { asked++; return <-answer })
		limiter := runtime.New(runtime.NewMemoryStore(), quiet)
		for range 10 {
			if _, err := limiter.Take(t.Context(), rule.Limit(nil)); err != nil || limiter.Factor(rule) != 1 {
				t.Fatal(err, limiter.Factor(rule))
			}
			synctest.Wait()
			time.Sleep(2 * time.Second)
		}
		if asked != 1 {
			t.Errorf("asked %d times at once", asked)
		}
		answer <- 0.5
		synctest.Wait()
		if f := limiter.Factor(rule); f != 0.5 {
			t.Errorf("factor %v", f)
		}
		limiter.Close()
	})
}

// TestCloseBesideHungScaler does not wait for a scaler that gives no answer.
func TestCloseBesideHungScaler(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan float64)
		rule := &runtime.Rule{Name: "r", Prefix: "r:", Window: time.Minute, Max: 10}
		rule.Adaptive = scalerFunc(func(runtime.Load) float64 { return <-answer })
		limiter := runtime.New(runtime.NewMemoryStore(), quiet)
		_, _ = limiter.Take(t.Context(), rule.Limit(nil))
		start := time.Now()
		if err := limiter.Close(); err == nil || time.Since(start) != time.Second {
			t.Errorf("closed after %v: %v", time.Since(start), err)
		}
		answer <- 0.5
		if err := limiter.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestFactorOf is what a rule's factor is where there is none.
func TestFactorOf(t *testing.T) {
	t.Parallel()
	plain, adaptive := &runtime.Rule{}, &runtime.Rule{Adaptive: always(2)}
	limiter := runtime.New(nil, quiet)
	for _, r := range []*runtime.Rule{nil, plain, adaptive} {
		limiter.Measure(r, time.Now())
		if factor := limiter.Factor(r); factor != 1 {
			t.Errorf("factor %v", factor)
		}
	}
}

// TestMeasureAllocates nothing.
func TestMeasureAllocates(t *testing.T) {
	rule := &runtime.Rule{Name: "r", Prefix: "r:", Window: time.Hour, Max: 1_000_000, Adaptive: always(1)}
	limiter := runtime.New(runtime.NewMemoryStore(), quiet)
	defer limiter.Close()
	adapt(t, limiter, rule, 1)
	start := time.Now()
	if n := testing.AllocsPerRun(1000, func() { limiter.Measure(rule, start) }); n != 0 {
		t.Errorf("measuring allocates %v", n)
	}
	limit := rule.Limit(key("k"))
	take := func() { _, _ = limiter.Take(context.Background(), limit) }
	take()
	if n := testing.AllocsPerRun(1000, take); n >= 1 {
		t.Errorf("a call by an adaptive rule allocates %v", n)
	}
}

// BenchmarkAdaptive is what adapting adds to a call, and measuring it.
func BenchmarkAdaptive(b *testing.B) {
	rule := runtime.Rule{Name: "r", Prefix: "r:", Window: time.Hour, Max: runtime.MaxCount, Algorithm: runtime.TokenBucket}
	adaptive := rule
	adaptive.Adaptive = always(0.5)
	limiter := runtime.New(runtime.NewMemoryStore(), quiet)
	defer limiter.Close()
	take := func(b *testing.B, r *runtime.Rule) {
		if _, err := limiter.Take(context.Background(), r.Limit(nil)); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("plain", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			take(b, &rule)
		}
	})
	b.Run("adaptive", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			take(b, &adaptive)
		}
	})
	b.Run("measured", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			take(b, &adaptive)
			limiter.Measure(&adaptive, time.Now())
		}
	})
}
