package runtime_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
	for want, call := range refusals(runtime.WithDenied(func(ctx context.Context, err error) error {
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
			ctx = runtime.WithRefusals(ctx, func(r runtime.Refusal) { seen = append(seen, r) })
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
		for way, call := range refusals(runtime.WithDenied(form), observing(runtime.Observer{Panic: panics.add})) {
			if err := call(t.Context()); !errors.Is(err, way.error) {
				t.Errorf("%s, %v: the caller got %v", name, way, err)
			}
		}
	}
	if diff := cmp.Diff(map[string]bool{"denied": true}, counted(&panics)); diff != "" {
		t.Errorf("panics (-want +got):\n%s", diff)
	}
}

// A caller that gives up is not refused, and an admitted call concerns nobody.
func TestDeniedConcernsRefusalsOnly(t *testing.T) {
	t.Parallel()
	limiter := inMemory(runtime.WithDenied(func(_ context.Context, err error) error {
		t.Error("called for", err)
		return err
	}))
	rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 1, Algorithm: runtime.LeakyBucket, Wait: time.Hour}
	taken(t, limiter, rule.Limit(nil))
	ended, end := context.WithCancel(t.Context())
	end()
	ended = runtime.WithRefusals(ended, func(r runtime.Refusal) { t.Error("recorded", r) })
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
	ctx := runtime.WithRefusals(t.Context(), func(r runtime.Refusal) {
		if r.Err != r.Returned {
			t.Error(r)
		}
		outer++
	})
	ctx = runtime.WithRecorder(ctx, func(runtime.DecisionEvent) { decisions++ })
	ctx = runtime.WithRefusals(ctx, func(runtime.Refusal) { panic("refusals") })
	ctx = runtime.WithRefusals(ctx, func(runtime.Refusal) { inner++ })
	if same := runtime.WithRefusals(ctx, nil); same != ctx {
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
