package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
	"github.com/rategen/rategen/runtime/wrapper"
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
	all := map[refusal]func(context.Context) error{}
	add := func(want error, why string, limiter *runtime.Limiter, limits ...runtime.Limit) {
		all[refusal{want, why}] = func(ctx context.Context) error {
			_, err := limiter.Take(ctx, limits...)
			return err
		}
		all[refusal{want, why + ", each"}] = func(ctx context.Context) error { return limiter.TakeEach(ctx, limits[0])[0].Err }
	}
	opts = append(opts, quiet, closed)
	rule := perHour(1)
	full, other := rule.Limit(key("full")), (&runtime.Rule{Name: "other", Window: time.Hour, Max: 9}).Limit(nil)
	memory := runtime.New(runtime.NewMemoryStore(), opts...)
	_, _ = memory.Take(context.Background(), full)
	capped := runtime.New(runtime.NewMemoryStore(), append(opts, runtime.WithProcessCap(&runtime.Rule{Name: "cap", Window: time.Hour, Max: 1}))...)
	_, _ = capped.Take(context.Background(), rule.Limit(key("other")))
	message := func(want error, why string, limit runtime.Limit, cost int64) {
		all[refusal{want, why}] = func(ctx context.Context) error {
			d, err := memory.Take(ctx, limit)
			if err != nil {
				return err
			}
			m := memory.Meter(ctx, d)
			defer m.Close(0)
			return m.Charge(cost)
		}
	}
	message(runtime.ErrLimited, "message", rule.Limit(key("stream")), 1)
	message(runtime.ErrInvalidLimit, "permits of a message", (&runtime.Rule{Name: "permits", Algorithm: runtime.Concurrency, Window: time.Hour, Max: 9}).Limit(nil), 1)
	add(runtime.ErrLimited, "one limit", memory, full)
	add(runtime.ErrLimited, "two limits", memory, full, other)
	add(runtime.ErrLimited, "cap", capped, full)
	add(runtime.ErrLimited, "cap, two limits", capped, full, other)
	add(runtime.ErrCostExceedsLimit, "cost", memory, full.WithCost(2))
	ended := runtime.New(runtime.NewMemoryStore(), opts...)
	_ = ended.Close()
	waits := (&runtime.Rule{Name: "waits", Window: time.Hour, Max: 1, Wait: time.Hour}).Limit(nil)
	_, _ = ended.Take(context.Background(), waits)
	all[refusal{runtime.ErrClosed, "closed"}] = func(ctx context.Context) error {
		_, err := ended.Take(ctx, waits)
		return err
	}
	add(runtime.ErrUnavailable, "broken store", runtime.New(broken(), opts...), full)
	add(runtime.ErrInvalidKey, "key", memory, keyless(rule))
	add(runtime.ErrInvalidLimit, "negative cost", memory, full.WithCost(-1))
	return all
}

// Every refusal takes the form that the application wants, and a listener of the
// context learns the true reason.
func TestRefused(t *testing.T) {
	t.Parallel()
	formed := &domainError{"too many"}
	var received []error
	var calling context.Context
	for want, call := range refusals(runtime.WithRefusalError(func(ctx context.Context, err error) error {
		if ctx != calling {
			t.Error("not the context of the call")
		}
		received = append(received, err)
		return formed
	})) {
		t.Run(want.Error()+" "+want.way, func(t *testing.T) {
			var seen []observe.Refusal
			received = nil
			calling = observe.WithRefusalRecorder(t.Context(), func(r observe.Refusal) { seen = append(seen, r) })
			equal(t, "the caller's error", call(calling), error(formed))
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
func TestRefusedNeverAdmits(t *testing.T) {
	t.Parallel()
	var panics recorder[observe.PanicEvent]
	for name, form := range map[string]func(context.Context, error) error{
		"nil":   func(context.Context, error) error { return nil },
		"panic": func(context.Context, error) error { panic("refused") },
	} {
		for want, call := range refusals(runtime.WithRefusalError(form), observing(observe.Observer{Panic: panics.add})) {
			wantError(t, name+", "+want.way, call(t.Context()), want.error)
		}
	}
	same(t, "panics", map[string]bool{"refused": true}, counted(&panics))
}

// A caller that gives up is not refused, and an admitted call concerns nobody.
func TestRefusedConcernsRefusalsOnly(t *testing.T) {
	t.Parallel()
	limiter := inMemory(runtime.WithRefusalError(func(_ context.Context, err error) error {
		t.Error("called for", err)
		return err
	}))
	rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 1, Algorithm: runtime.LeakyBucket, Wait: time.Hour}
	taken(t, limiter, rule.Limit(nil))
	ended, end := context.WithCancel(t.Context())
	end()
	ended = observe.WithRefusalRecorder(ended, func(r observe.Refusal) { t.Error("recorded", r) })
	for _, limits := range [][]runtime.Limit{{rule.Limit(nil)}, {rule.Limit(nil), rule.Limit(key("2"))}} {
		_, err := limiter.Take(ended, limits...)
		wantError(t, "a caller that has left", err, context.Canceled)
	}
}

// Listeners nest, a panic in one is contained, and nil is none.
func TestRefusalsNest(t *testing.T) {
	t.Parallel()
	var panics recorder[observe.PanicEvent]
	limiter := inMemory(observing(observe.Observer{Panic: panics.add}))
	var outer, inner, decisions int
	ctx := observe.WithRefusalRecorder(t.Context(), func(r observe.Refusal) {
		if r.Err == r.Returned {
			outer++
		}
	})
	ctx = observe.WithRecorder(ctx, func(observe.DecisionEvent) { decisions++ })
	ctx = observe.WithRefusalRecorder(ctx, func(observe.Refusal) { panic("refusals") })
	ctx = observe.WithRefusalRecorder(ctx, func(observe.Refusal) { inner++ })
	equal(t, "a context with one more that is nil", observe.WithRefusalRecorder(ctx, nil), ctx)
	_, err := limiter.Take(ctx, perHour(0).Limit(nil))
	if !errors.Is(err, runtime.ErrLimited) || outer != 1 || inner != 1 || decisions != 1 || !counted(&panics)["recorder"] {
		t.Error(err, outer, inner, decisions, panics.all())
	}
}

// Frameworks ask errors for their status.
func TestStatusCode(t *testing.T) {
	t.Parallel()
	for want, call := range refusals() {
		code := map[error]int{
			runtime.ErrLimited: http.StatusTooManyRequests, runtime.ErrCostExceedsLimit: http.StatusTooManyRequests,
			runtime.ErrUnavailable: http.StatusServiceUnavailable, runtime.ErrClosed: http.StatusServiceUnavailable,
		}[want.error]
		err := call(t.Context())
		var status interface{ StatusCode() int }
		if errors.As(err, &status) {
			equal(t, err.Error()+": status", status.StatusCode(), code)
		} else if code != 0 {
			t.Errorf("%v has no status", err)
		}
	}
}

// A call knows which soft limits it exceeds, its own and those of the calls that it is
// made by, and goes on. What other modes and other calls find does not concern it.
func TestExceeded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		shadowed := 0
		l := inMemory(observing(observe.Observer{
			Decision: func(_ context.Context, ev observe.DecisionEvent) {
				if ev.Verdict == observe.VerdictShadowRefused {
					shadowed++
				}
			},
		}))
		rule := func(name string, mode runtime.Mode, max int64) *runtime.Rule {
			return &runtime.Rule{Name: name, Window: time.Minute, Max: max, Mode: mode, Message: "over " + name}
		}
		queue := rule("queue", runtime.ModeSoft, 1)
		queue.Algorithm, queue.Wait = runtime.LeakyBucket, time.Second
		rules := []*runtime.Rule{
			rule("soft", runtime.ModeSoft, 1), rule("shadow", runtime.ModeShadow, 1), rule("second", runtime.ModeSoft, 2),
			queue, rule("enforced", runtime.ModeEnforce, 9),
		}
		take := func(ctx context.Context, rules ...*runtime.Rule) context.Context {
			t.Helper()
			ctx = wrapper.WithExceeded(ctx)
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
		equal(t, "time that soft limits wait", time.Since(start), 0)
		if runtime.Exceeded(t.Context()) != nil || runtime.Exceeded(wrapper.WithExceeded(t.Context())) != nil {
			t.Error("exceeded without a call")
		}
		equal(t, "refusals that only count", shadowed, 2+2+1+2+3)
		time.Sleep(2 * time.Minute)
		equal(t, "exceeded in the end", names(take(t.Context(), rules...)), "")
	})
}

// An override may make a limit soft, and a soft one enforced.
func TestExceededByOverride(t *testing.T) {
	t.Parallel()
	for mode, want := range map[runtime.Mode]struct {
		exceeded int
		err      error
	}{runtime.ModeSoft: {1, nil}, runtime.ModeShadow: {0, nil}, runtime.ModeEnforce: {0, runtime.ErrLimited}} {
		for _, declared := range []runtime.Mode{runtime.ModeEnforce, runtime.ModeSoft, runtime.ModeShadow} {
			limit := (&runtime.Rule{Name: "r", Window: time.Minute, Max: 1, Mode: declared}).Limit(nil)
			l := inMemory(overridden(overridesOf(rule.Override{Mode: &mode})))
			taken(t, l, limit)
			ctx := wrapper.WithExceeded(t.Context())
			_, err := l.Take(ctx, limit)
			wantError(t, fmt.Sprintf("%v overridden by %v", declared, mode), err, want.err)
			equal(t, fmt.Sprintf("%v overridden by %v: exceeded", declared, mode), len(runtime.Exceeded(ctx)), want.exceeded)
			ok(t, l.Close())
		}
	}
}
