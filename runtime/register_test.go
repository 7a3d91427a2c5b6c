package runtime_test

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/runtime"
)

// TestRules registers rules before their first call and reads what holds for
// them: as declared, under overrides, by an adaptive factor and with limits
// switched off.
func TestRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plain := &runtime.Rule{Name: "b", Window: time.Second, Max: 10}
		twin := &runtime.Rule{Name: "b", Source: "z", Prefix: "twin", Window: time.Second, Max: 10}
		adaptive := &runtime.Rule{Name: "a", Window: time.Minute, Max: 100, Adaptive: half{}}
		overrides, source := settable()
		var attached *runtime.Limiter
		limiter := runtime.New(runtime.NewMemoryStore(), runtime.WithOverrides(source, time.Second),
			runtime.WithObserver(&runtime.Observer{Attach: func(l *runtime.Limiter) { attached = l }}))
		defer func() { _ = limiter.Close() }()
		if attached != limiter {
			t.Fatal("the observer does not have its limiter")
		}
		limiter.Register(plain, nil, adaptive)
		limiter.Register(twin, plain)

		check := func(what string, want ...runtime.RuleState) {
			t.Helper()
			ignore := cmp.Comparer(func(a, b *runtime.Rule) bool { return a == b })
			if diff := cmp.Diff(want, limiter.Rules(), ignore); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
		}
		second, minute := time.Second, time.Minute
		wantTwin := runtime.RuleState{Rule: twin, Enabled: true, Max: 10, Window: second, Factor: 1}
		wantPlain := runtime.RuleState{Rule: plain, Enabled: true, Max: 10, Window: second, Factor: 1}
		wantAdaptive := runtime.RuleState{Rule: adaptive, Enabled: true, Max: 100, Window: minute, Factor: 1}
		check("as declared", wantAdaptive, wantPlain, wantTwin)

		if _, err := limiter.Take(t.Context(), adaptive.Limit(nil)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		wantAdaptive.Factor, wantAdaptive.Max = 0.5, 50
		check("with a factor", wantAdaptive, wantPlain, wantTwin)

		overrides.Store(&runtime.Overrides{Rules: map[string]runtime.Override{
			"a": {Max: new(int64(40)), Mode: new(runtime.Shadow)},
			"b": {Keys: map[string]runtime.KeyOverride{"x": {Max: new(int64(1))}, "y*": {Enabled: new(false)}, "z": {Max: new(int64(1))}}},
		}})
		time.Sleep(2 * time.Second)
		wantAdaptive.Max, wantAdaptive.Mode, wantAdaptive.Overridden = 20, runtime.Shadow, true
		wantPlain.Keys, wantTwin.Keys = 3, 3
		check("overridden", wantAdaptive, wantPlain, wantTwin)

		overrides.Store(&runtime.Overrides{Rules: map[string]runtime.Override{"b": {Enabled: new(false)}}})
		time.Sleep(2 * time.Second)
		wantAdaptive.Max, wantAdaptive.Mode, wantAdaptive.Overridden = 50, runtime.Enforce, false
		wantPlain.Keys, wantTwin.Keys = 0, 0
		wantPlain.Enabled, wantTwin.Enabled = false, false
		wantPlain.Overridden, wantTwin.Overridden = true, true
		check("switched off by an override", wantAdaptive, wantPlain, wantTwin)

		overrides.Store(&runtime.Overrides{Enabled: new(false)})
		time.Sleep(2 * time.Second)
		wantAdaptive.Enabled = false
		wantPlain.Overridden, wantTwin.Overridden = false, false
		check("all limits off", wantAdaptive, wantPlain, wantTwin)
	})
}

// settable returns overrides that a test sets, and their source.
func settable() (*atomic.Pointer[runtime.Overrides], runtime.OverrideSource) {
	overrides := new(atomic.Pointer[runtime.Overrides])
	overrides.Store(new(runtime.Overrides))
	return overrides, runtime.OverrideFunc(func(context.Context) (runtime.Overrides, error) { return *overrides.Load(), nil })
}

type half struct{}

func (half) Factor(runtime.Load) float64 { return 0.5 }

// TestRegisteredRulesMeetOverrides wants an override that fits no registered rule
// to be refused when it is read, and one of a registered rule not to be taken for
// a misspelt name.
func TestRegisteredRulesMeetOverrides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rule := &runtime.Rule{Name: "log", Window: time.Second, Max: 10}
		overrides, source := settable()
		overrides.Store(&runtime.Overrides{Rules: map[string]runtime.Override{"log": {Max: new(int64(7))}}})
		var log strings.Builder
		limiter := runtime.New(runtime.NewMemoryStore(), runtime.WithOverrides(source, time.Second),
			runtime.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		limiter.Register(rule)
		time.Sleep(3 * time.Minute)
		overrides.Store(&runtime.Overrides{Rules: map[string]runtime.Override{"log": {Max: new(int64(runtime.MaxLog + 1))}}})
		time.Sleep(2 * time.Second)
		if got := limiter.Rules()[0].Max; got != 7 {
			t.Errorf("max %d after an override that does not fit, want that of the last good one, 7", got)
		}
		if err := limiter.Close(); err != nil {
			t.Error(err)
		}
		if strings.Contains(log.String(), "no call has used") {
			t.Errorf("the log takes a registered rule for a misspelt name:\n%s", &log)
		}
		if !strings.Contains(log.String(), "1000001") {
			t.Errorf("the log does not name the override that does not fit:\n%s", &log)
		}
	})
}
