package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
)

// testHold wants a hold by one replica to deny all calls on its key, and on no other, on
// all replicas at once, until it is released or reset.
func testHold(t *testing.T, replica replicas) {
	ctx, one, other := t.Context(), replica(), replica()
	for name, rule := range blockingRules(10*time.Hour, 10) {
		t.Run(name, func(t *testing.T) {
			rule.Hold = true
			limit, free := rule.Limit(key("k")), rule.Limit(key("free"))
			taken(t, other, limit, free)
			for _, end := range []func(context.Context, runtime.Limit) error{one.Release, one.Reset} {
				ok(t, one.Hold(ctx, limit, time.Hour))
				for _, l := range []*runtime.Limiter{other, one} {
					if rest := blockedBy(t, l, limit).RetryAfter; rest > time.Hour || rest < 59*time.Minute {
						t.Fatalf("retry after %v, want the rest of an hour", rest)
					}
					if _, err := l.Take(ctx, free); err != nil {
						t.Fatalf("another key: %v", err)
					}
				}
				ok(t, end(ctx, limit))
				if _, err := one.Take(ctx, limit); err != nil {
					t.Fatalf("when the hold has ended: %v", err)
				}
			}
		})
	}
}

// TestHoldErrors wants holds that cannot be to say so.
func TestHoldErrors(t *testing.T) {
	t.Parallel()
	limiter := inMemory()
	rule := func(change func(*runtime.Rule)) runtime.Limit {
		r := &runtime.Rule{Name: "r", Window: time.Second, Max: 1, Hold: true}
		change(r)
		return r.Limit(nil)
	}
	for name, c := range map[string]struct {
		limit runtime.Limit
		d     time.Duration
		err   error
	}{
		"fine":         {rule(func(*runtime.Rule) {}), time.Second, nil},
		"no Hold":      {rule(func(r *runtime.Rule) { r.Hold = false }), time.Second, runtime.ErrInvalidLimit},
		"permits":      {rule(func(r *runtime.Rule) { r.Algorithm = runtime.Concurrency }), time.Second, runtime.ErrInvalidLimit},
		"a lease":      {rule(func(r *runtime.Rule) { r.Lease = time.Millisecond }), time.Second, runtime.ErrInvalidLimit},
		"negative":     {rule(func(*runtime.Rule) {}), -1, runtime.ErrInvalidLimit},
		"nothing":      {rule(func(*runtime.Rule) {}), 0, runtime.ErrInvalidLimit},
		"for ever":     {rule(func(*runtime.Rule) {}), runtime.Never, runtime.ErrInvalidLimit},
		"no rule":      {runtime.Limit{}, time.Second, runtime.ErrInvalidLimit},
		"a broken key": {(&runtime.Rule{Name: "r", Window: time.Second, Max: 1, Hold: true}).Limit(key("a").AddInvalid("nil")), time.Second, runtime.ErrInvalidKey},
	} {
		if err := limiter.Hold(t.Context(), c.limit, c.d); !errors.Is(err, c.err) || c.err == nil && err != nil {
			t.Errorf("%s: %v, want %v", name, err, c.err)
		}
	}
	if err := runtime.New(&brokenStore{}, quiet).Hold(t.Context(), rule(func(*runtime.Rule) {}), time.Second); err == nil {
		t.Error("a broken store: no error")
	}
}

// TestReleaseAndWait wants calls that wait for the end of a hold to go on soon after
// another replica has released it, and not to ask often before.
func TestReleaseAndWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx, store, asked := t.Context(), runtime.NewMemoryStore(), 0
		observer := &runtime.Observer{Decision: func(context.Context, runtime.DecisionEvent) { asked++ }}
		one, other := runtime.New(store, quiet, runtime.WithObserver(observer)), runtime.New(store, quiet)
		rule := &runtime.Rule{Name: "r", Window: time.Second, Max: 10, Wait: time.Hour, Hold: true}
		limit := rule.Limit(nil)
		ok(t, other.Hold(ctx, limit, 10*time.Minute))
		start := time.Now()
		time.AfterFunc(time.Minute+100*time.Millisecond, func() {
			if err := other.Release(ctx, limit); err != nil {
				t.Error(err)
			}
		})
		if _, err := one.Take(ctx, limit); err != nil || time.Since(start) > time.Minute+2*time.Second || asked > 1 {
			t.Errorf("%v after %v and %d decisions, want it admitted within 2 s of its release", err, time.Since(start), asked)
		}
	})
}

// TestHoldAndWait wants calls that may wait to wait for the end of a hold, those of a
// queue in line, and others to fail at once.
func TestHoldAndWait(t *testing.T) {
	t.Parallel()
	for _, a := range []runtime.Algorithm{runtime.SlidingLog, runtime.TokenBucket, runtime.LeakyBucket} {
		t.Run(a.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limiter := inMemory()
				rule := &runtime.Rule{Name: "r", Window: time.Second, Max: 10, Algorithm: a, Wait: 5 * time.Second, Hold: true}
				limit := rule.Limit(nil)
				ok(t, limiter.Hold(t.Context(), limit, 2*time.Second))
				start := time.Now()
				if _, err := limiter.Take(t.Context(), limit); err != nil || time.Since(start) != 2*time.Second {
					t.Errorf("%v after %v, want it admitted after 2s", err, time.Since(start))
				}
				ok(t, limiter.Hold(t.Context(), limit, 6*time.Second))
				start = time.Now()
				var limited *runtime.LimitedError
				if _, err := limiter.Take(t.Context(), limit); !errors.As(err, &limited) || !limited.Blocked || limited.RetryAfter != 6*time.Second || time.Since(start) != 0 {
					t.Errorf("%v after %v, want it denied at once", err, time.Since(start))
				}
			})
		})
	}
}

// TestHoldOff wants what the results of a call ask for to be held for, within bounds,
// whatever has become of the caller, and what goes wrong to be reported.
func TestHoldOff(t *testing.T) {
	bubble(t, func(t *testing.T) {
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		var lines strings.Builder
		var failures []runtime.FailureEvent
		seen := []runtime.Option{
			runtime.WithLogger(slog.New(slog.NewTextHandler(&lines, nil))),
			runtime.WithObserver(&runtime.Observer{Failure: func(_ context.Context, ev runtime.FailureEvent) { failures = append(failures, ev) }}),
		}
		limiter := runtime.New(runtime.NewMemoryStore(), seen...)
		for i, c := range []struct {
			window, d, want time.Duration
		}{
			{time.Second, -1, 0},
			{time.Second, 0, 0},
			{time.Second, 1, time.Microsecond},
			{time.Second, time.Minute, time.Minute},
			{time.Second, 2 * time.Hour, time.Hour},
			{time.Second, runtime.Never, time.Hour},
			{24 * time.Hour, 2 * time.Hour, 2 * time.Hour},
			{24 * time.Hour, 200 * time.Hour, 24 * time.Hour},
		} {
			rule := &runtime.Rule{Name: fmt.Sprint("r", i), Window: c.window, Max: 10, Hold: true}
			limit := rule.Limit(nil)
			limiter.HoldOff(gone, limit, c.d)
			d, err := limiter.Peek(context.Background(), limit)
			if d.RetryAfter != c.want || d.Blocked != (c.want > 0) {
				t.Errorf("%v: %+v, %v, want calls held back for %v", c.d, d, err, c.want)
			}
			limiter.HoldOff(gone, limit, c.d) // within a second, and so without a line
			equal(t, fmt.Sprintf("%v: lines", c.d), strings.Count(lines.String(), "rule="+rule.Name+" "), min(1, int(c.want)))
		}
		limiter.HoldOff(gone, runtime.Limit{}, time.Second)
		if n := strings.Count(lines.String(), "bounded=true"); n != 3 || len(failures) > 0 {
			t.Errorf("%d lines say that a hold is bounded, and there are %d failures\n%s", n, len(failures), &lines)
		}
		lines.Reset()
		runtime.New(&brokenStore{}, seen...).HoldOff(gone, (&runtime.Rule{Name: "r", Window: time.Second, Max: 1, Hold: true}).Limit(nil), time.Second)
		if len(failures) != 1 || !failures[0].Holding || failures[0].Err == nil || !strings.Contains(lines.String(), "by this process alone") {
			t.Errorf("a broken store: %+v, %s", failures, &lines)
		}
	})
}
