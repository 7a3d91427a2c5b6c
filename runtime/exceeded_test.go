package runtime_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
)

// A call knows which soft limits it exceeds, its own and those of the calls that it is
// made by, and goes on. What other modes and other calls find does not concern it.
func TestExceeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var verdicts []runtime.Verdict
		l := inMemory(observing(runtime.Observer{
			Decision: func(_ context.Context, ev runtime.DecisionEvent) { verdicts = append(verdicts, ev.Verdict) },
		}))
		rule := func(name string, mode runtime.Mode, max int64, of ...func(*runtime.Rule)) *runtime.Rule {
			r := &runtime.Rule{Name: name, Window: time.Minute, Max: max, Mode: mode, Message: "over " + name}
			for _, change := range of {
				change(r)
			}
			return r
		}
		queue := func(r *runtime.Rule) { r.Algorithm, r.Wait = runtime.LeakyBucket, time.Second }
		rules := []*runtime.Rule{
			rule("soft", runtime.ModeSoft, 1), rule("shadow", runtime.ModeShadow, 1), rule("second", runtime.ModeSoft, 2),
			rule("queue", runtime.ModeSoft, 1, queue), rule("enforced", runtime.ModeEnforce, 9),
		}
		take := func(ctx context.Context, rules ...*runtime.Rule) context.Context {
			t.Helper()
			ctx = runtime.WithExceeded(ctx)
			var limits []runtime.Limit
			for _, r := range rules {
				limits = append(limits, r.Limit(nil))
			}
			if d, err := l.Take(ctx, limits...); err != nil || !d.Allowed {
				t.Fatal(d, err)
			}
			return ctx
		}
		names := func(ctx context.Context) (all string) {
			for _, e := range runtime.Exceeded(ctx) {
				all += e.Rule + " "
				if e.RetryAfter <= 0 || e.RetryAfter > time.Minute || e.Error() != "over "+e.Rule {
					t.Errorf("%+v", e)
				}
			}
			return all
		}
		start := time.Now()
		for i, want := range []string{"", "soft queue ", "soft second queue "} {
			ctx := take(t.Context(), rules...)
			if got := names(ctx); got != want {
				t.Errorf("call %d exceeds %q, want %q", i, got, want)
			}
			if got := names(take(ctx, rule("inner", runtime.ModeEnforce, 9))); got != want {
				t.Errorf("call %d: what it calls knows %q", i, got)
			}
			never := runtime.Exceeded(take(ctx, rule("never", runtime.ModeSoft, 0)))
			if never[0].Rule != "never" || never[0].RetryAfter != runtime.Never {
				t.Errorf("%+v", never[0])
			}
			if got := names(ctx); got != want {
				t.Errorf("call %d knows what another one exceeds: %q", i, got)
			}
		}
		if time.Since(start) > 0 {
			t.Error("a soft limit waits")
		}
		if runtime.Exceeded(t.Context()) != nil || runtime.Exceeded(runtime.WithExceeded(t.Context())) != nil {
			t.Error("exceeded without a call")
		}
		shadowed := 0
		for _, v := range verdicts {
			if v == runtime.VerdictShadowDenied {
				shadowed++
			}
		}
		if shadowed != 2+2+1+2+3 {
			t.Errorf("%d verdicts of limits that only count: %v", shadowed, verdicts)
		}
		time.Sleep(2 * time.Minute)
		if got := names(take(t.Context(), rules...)); got != "" {
			t.Error(got)
		}
	})
}

// An override may make a limit soft, and a soft one enforced.
func TestExceededByOverride(t *testing.T) {
	for mode, want := range map[runtime.Mode]struct {
		exceeded int
		err      bool
	}{runtime.ModeSoft: {1, false}, runtime.ModeShadow: {0, false}, runtime.ModeEnforce: {0, true}} {
		for _, declared := range []runtime.Mode{runtime.ModeEnforce, runtime.ModeSoft, runtime.ModeShadow} {
			r := &runtime.Rule{Name: "r", Window: time.Minute, Max: 1, Mode: declared}
			source := runtime.OverrideFunc(func(context.Context) (runtime.Overrides, error) {
				return runtime.Overrides{Rules: map[string]runtime.Override{"r": {Mode: &mode}}}, nil
			})
			l := inMemory(runtime.WithOverrides(source, 0))
			var ctx context.Context
			var err error
			for range 2 {
				ctx = runtime.WithExceeded(t.Context())
				_, err = l.Take(ctx, r.Limit(nil))
			}
			if n := len(runtime.Exceeded(ctx)); n != want.exceeded || (err != nil) != want.err {
				t.Errorf("%v overridden by %v: %d exceeded, %v", declared, mode, n, err)
			}
			l.Close()
		}
	}
}
