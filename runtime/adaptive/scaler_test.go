package adaptive_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/adaptive"
	"github.com/rategen/rategen/runtime/rule"
)

// TestOwnSignals has a scaler without signals adapt rules to their own.
func TestOwnSignals(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMachine(0, 1)
		ours := adaptive.To(adaptive.Band(0.2, 4), m.readings())
		limiter := runtime.New(runtime.NewMemoryStore(), runtime.WithScaler(ours))
		defer limiter.Close()
		rules := map[float64]*runtime.Rule{
			4:   {Name: "cpu", Adaptive: adaptive.To(adaptive.CPU)},
			0.2: {Name: "both", Adaptive: adaptive.To(adaptive.CPU, adaptive.Memory)},
			1:   {Name: "neither", Adaptive: adaptive.To()},
		}
		for range 60 {
			for _, r := range rules {
				r.Prefix, r.Window, r.Max = r.Name, time.Second, 10
				if _, err := limiter.Take(t.Context(), r.Limit(nil)); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Second)
		}
		for want, r := range rules {
			if f := bridge.LimiterOf(limiter).Factor(r); f != want {
				t.Errorf("%s: factor %v, want %v", r.Name, f, want)
			}
		}
		if f := ours.Factor(rule.Load{Factor: 1}); f != 1 {
			t.Errorf("without a rule: %v", f)
		}
	})
}

// TestFailedReading logs a reading that fails, once, and leaves the rule to the
// other signals.
func TestFailedReading(t *testing.T) {
	var logged bytes.Buffer
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(slog.NewTextHandler(&logged, nil)))
	synctest.Test(t, func(t *testing.T) {
		works, reads := false, 0
		d := drive(t, adaptive.CPU, adaptive.Memory, adaptive.Readings(
			func() (float64, error) {
				reads++
				if works {
					return 1, nil
				}
				return 0, errors.New("no such thing here")
			},
			func() (float64, error) { return 0, nil },
		))
		if f := d.run(30, 0); f != 1.5 {
			t.Errorf("factor %v, want that of the memory", f)
		}
		works = true
		if f := d.run(60, 0); f != 0.5 {
			t.Errorf("factor %v when the reading is back", f)
		}
		works = false
		d.run(30, 0)
		if reads != 120 {
			t.Errorf("%d readings in 120 seconds", reads)
		}
	})
	if n := strings.Count(logged.String(), "\n"); n != 1 || !strings.Contains(logged.String(), `reading=cpu error="no such thing here"`) {
		t.Errorf("%d lines:\n%s", n, &logged)
	}
}

// TestSharedReading reads once a second for however many rules.
func TestSharedReading(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var reads atomic.Int64
		scaler := adaptive.To(adaptive.CPU, adaptive.Readings(func() (float64, error) { reads.Add(1); return 0.9, nil }, nil))
		limiter := runtime.New(runtime.NewMemoryStore(), runtime.WithScaler(scaler))
		defer limiter.Close()
		rules := make([]*runtime.Rule, 50)
		for i := range rules {
			rules[i] = &runtime.Rule{Prefix: string(rune('a' + i)), Window: time.Second, Max: 100, Adaptive: scaler}
		}
		for range 100 {
			for _, rule := range rules {
				if _, err := limiter.Take(t.Context(), rule.Limit(nil)); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
			time.Sleep(100 * time.Millisecond)
		}
		if n := reads.Load(); n != 10 {
			t.Errorf("%d readings in ten seconds", n)
		}
		for _, rule := range rules {
			if f := bridge.LimiterOf(limiter).Factor(rule); f != 0.7 {
				t.Errorf("factor %v", f)
			}
		}
	})
}

func TestSignalNames(t *testing.T) {
	t.Parallel()
	for signal, want := range map[adaptive.Signal]string{adaptive.CPU: "cpu", adaptive.Memory: "memory", adaptive.Latency: "latency", 9: "Signal(9)"} {
		if got := signal.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
