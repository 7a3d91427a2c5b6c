package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
)

// A domainError is an error of an application, which hides what it was made of.
type domainError struct{ code string }

func (e *domainError) Error() string { return e.code }

// A refusal is an error that calls get, and a way to get it.
type refusal struct {
	error
	way string
}

// refusals has limiters refuse calls in every way that there is.
func refusals(opts ...runtime.Option) map[refusal]func(context.Context) error {
	rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 1}
	take := func(limiter *runtime.Limiter, limits ...runtime.Limit) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := limiter.Take(ctx, limits...)
			return err
		}
	}
	each := func(limiter *runtime.Limiter, limits ...runtime.Limit) func(context.Context) error {
		return func(ctx context.Context) error { return limiter.TakeEach(ctx, limits...)[0].Err }
	}
	opts = append(opts, quiet, runtime.WithFailurePolicy(runtime.FailClosed))
	memory := runtime.New(runtime.NewMemoryStore(), opts...)
	full := rule.Limit(key("full"))
	_, _ = memory.Take(context.Background(), full)
	broken := runtime.New(&brokenStore{}, opts...)
	capped := runtime.New(runtime.NewMemoryStore(), append(opts, runtime.WithProcessCap(&runtime.Rule{Name: "cap", Window: time.Hour, Max: 1}))...)
	_, _ = capped.Take(context.Background(), rule.Limit(key("other")))
	other := (&runtime.Rule{Name: "other", Window: time.Hour, Max: 9}).Limit(nil)
	invalid := rule.Limit(runtime.NewKey().AddInvalid("nil"))
	return map[refusal]func(context.Context) error{
		{runtime.ErrLimited, "one limit"}:           take(memory, full),
		{runtime.ErrLimited, "two limits"}:          take(memory, full, other),
		{runtime.ErrLimited, "each"}:                each(memory, full),
		{runtime.ErrLimited, "cap"}:                 take(capped, full),
		{runtime.ErrLimited, "cap, two"}:            take(capped, full, other),
		{runtime.ErrLimited, "cap, each"}:           each(capped, full),
		{runtime.ErrCostExceedsLimit, "one"}:        take(memory, full.WithCost(2)),
		{runtime.ErrCostExceedsLimit, "each"}:       each(memory, full.WithCost(2)),
		{runtime.ErrUnavailable, "one"}:             take(broken, full),
		{runtime.ErrUnavailable, "each"}:            each(broken, full),
		{runtime.ErrInvalidKey, "one"}:              take(memory, invalid),
		{runtime.ErrInvalidKey, "each"}:             each(memory, invalid),
		{runtime.ErrInvalidLimit, "negative"}:       take(memory, full.WithCost(-1)),
		{runtime.ErrInvalidLimit, "each, negative"}: each(memory, full.WithCost(-1)),
	}
}

// Every refusal takes the form that the application wants, and a listener of the
// context learns the true reason.
func TestDenied(t *testing.T) {
	t.Parallel()
	formed := &domainError{"too many"}
	var received []error
	type callerKey struct{}
	for want, call := range refusals(runtime.WithRefusalError(func(ctx context.Context, err error) error {
		if ctx.Value(callerKey{}) != "test" {
			t.Error("not the context of the call")
		}
		received = append(received, err)
		return formed
	})) {
		t.Run(want.Error()+" "+want.way, func(t *testing.T) {
			var seen []runtime.Refusal
			received = nil
			ctx := context.WithValue(t.Context(), callerKey{}, "test")
			ctx = runtime.WithRefusalRecorder(ctx, func(r runtime.Refusal) { seen = append(seen, r) })
			if err := call(ctx); err != error(formed) {
				t.Errorf("the caller got %v", err)
			}
			if len(received) != 1 || !errors.Is(received[0], want.error) {
				t.Errorf("the function received %v", received)
			}
			if len(seen) != 1 || seen[0].Returned != error(formed) || !errors.Is(seen[0].Err, want.error) {
				t.Errorf("the listener received %v", seen)
			}
		})
	}
}

// No function of the application's admits a call that the limiter refused.
func TestDeniedNeverAdmits(t *testing.T) {
	t.Parallel()
	var panics recorder[runtime.PanicEvent]
	forms := map[string]func(context.Context, error) error{
		"nil":   func(context.Context, error) error { return nil },
		"panic": func(context.Context, error) error { panic("denied") },
	}
	for name, form := range forms {
		for way, call := range refusals(runtime.WithRefusalError(form), observing(runtime.Observer{Panic: panics.add})) {
			if err := call(t.Context()); !errors.Is(err, way.error) {
				t.Errorf("%s, %v: the caller got %v", name, way, err)
			}
		}
	}
	same(t, "panics", map[string]bool{"denied": true}, counted(&panics))
}

// A caller that gives up is not refused, and an admitted call concerns nobody.
func TestDeniedConcernsRefusalsOnly(t *testing.T) {
	t.Parallel()
	limiter := inMemory(runtime.WithRefusalError(func(_ context.Context, err error) error {
		t.Error("called for", err)
		return err
	}))
	rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 1, Algorithm: runtime.LeakyBucket, Wait: time.Hour}
	taken(t, limiter, rule.Limit(nil))
	ended, end := context.WithCancel(t.Context())
	end()
	ended = runtime.WithRefusalRecorder(ended, func(r runtime.Refusal) { t.Error("recorded", r) })
	for _, limits := range [][]runtime.Limit{{rule.Limit(nil)}, {rule.Limit(nil), rule.Limit(key("2"))}} {
		if _, err := limiter.Take(ended, limits...); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

// Listeners nest, a panic in one is contained, and nil is none.
func TestRefusalsNest(t *testing.T) {
	t.Parallel()
	var panics recorder[runtime.PanicEvent]
	limiter := inMemory(observing(runtime.Observer{Panic: panics.add}))
	rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 0}
	var outer, inner, decisions int
	ctx := runtime.WithRefusalRecorder(t.Context(), func(r runtime.Refusal) {
		if r.Err != r.Returned {
			t.Error(r)
		}
		outer++
	})
	ctx = runtime.WithRecorder(ctx, func(runtime.DecisionEvent) { decisions++ })
	ctx = runtime.WithRefusalRecorder(ctx, func(runtime.Refusal) { panic("refusals") })
	ctx = runtime.WithRefusalRecorder(ctx, func(runtime.Refusal) { inner++ })
	if same := runtime.WithRefusalRecorder(ctx, nil); same != ctx {
		t.Error("nil added something")
	}
	_, err := limiter.Take(ctx, rule.Limit(nil))
	if !errors.Is(err, runtime.ErrLimited) || outer != 1 || inner != 1 || decisions != 1 || !counted(&panics)["recorder"] {
		t.Error(err, outer, inner, decisions, panics.all())
	}
}

// Frameworks ask errors for their status.
func TestStatusCode(t *testing.T) {
	t.Parallel()
	for way, call := range refusals() {
		err := call(t.Context())
		var status interface{ StatusCode() int }
		want := map[error]int{
			runtime.ErrLimited: http.StatusTooManyRequests, runtime.ErrCostExceedsLimit: http.StatusTooManyRequests,
			runtime.ErrUnavailable: http.StatusServiceUnavailable,
		}[way.error]
		if got := 0; errors.As(err, &status) {
			if got = status.StatusCode(); got != want {
				t.Errorf("%v has status %d, not %d", err, got, want)
			}
		} else if want != 0 {
			t.Errorf("%v has no status", err)
		}
	}
	limiter := runtime.New(&brokenStore{}, quiet, runtime.WithFailurePolicy(runtime.FailClosed))
	_, err := limiter.Take(t.Context(), (&runtime.Rule{Name: "r", Window: time.Hour, Max: 1}).Limit(nil))
	if !errors.Is(err, errBroken) {
		t.Errorf("%v does not wrap the store's error", err)
	}
}

// A call knows which soft limits it exceeds, its own and those of the calls that it is
// made by, and goes on. What other modes and other calls find does not concern it.
func TestExceeded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var verdicts []runtime.Verdict
		l := inMemory(observing(runtime.Observer{
			Decision: func(_ context.Context, ev runtime.DecisionEvent) { verdicts = append(verdicts, ev.Verdict) },
		}))
		rule := func(name string, mode runtime.Mode, max int64, changes ...func(*runtime.Rule)) *runtime.Rule {
			r := &runtime.Rule{Name: name, Window: time.Minute, Max: max, Mode: mode, Message: "over " + name}
			for _, change := range changes {
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
			equal(t, fmt.Sprintf("call %d exceeds", i), names(ctx), want)
			equal(t, fmt.Sprintf("call %d: what it calls knows", i), names(take(ctx, rule("inner", runtime.ModeEnforce, 9))), want)
			never := runtime.Exceeded(take(ctx, rule("never", runtime.ModeSoft, 0)))
			if never[0].Rule != "never" || never[0].RetryAfter != runtime.Never {
				t.Errorf("%+v", never[0])
			}
			equal(t, fmt.Sprintf("call %d knows afterwards", i), names(ctx), want)
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
		equal(t, "exceeded in the end", names(take(t.Context(), rules...)), "")
	})
}

// An override may make a limit soft, and a soft one enforced.
func TestExceededByOverride(t *testing.T) {
	t.Parallel()
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
