package runtime_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
	"github.com/rategen/rategen/runtime/wrapper"
)

// testHold wants a hold by one replica to refuse all calls on its key, and on no other, on
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
					taken(t, l, free)
				}
				ok(t, end(ctx, limit))
				taken(t, one, limit)
			}
		})
	}
}

// TestHoldErrors wants holds that cannot be to say so.
func TestHoldErrors(t *testing.T) {
	t.Parallel()
	limiter := inMemory()
	rule := runtime.Rule{Name: "r", Window: time.Second, Max: 1, Hold: true}
	fine, unheld, permits, leased := rule.Limit(nil), rule, rule, rule
	unheld.Hold, permits.Algorithm, leased.Lease = false, runtime.Concurrency, time.Millisecond
	for name, c := range map[string]struct {
		limit runtime.Limit
		d     time.Duration
		want  error
	}{
		"fine":         {fine, time.Second, nil},
		"no Hold":      {unheld.Limit(nil), time.Second, runtime.ErrInvalidLimit},
		"permits":      {permits.Limit(nil), time.Second, runtime.ErrInvalidLimit},
		"a lease":      {leased.Limit(nil), time.Second, runtime.ErrInvalidLimit},
		"negative":     {fine, -1, runtime.ErrInvalidLimit},
		"nothing":      {fine, 0, runtime.ErrInvalidLimit},
		"for ever":     {fine, runtime.Never, runtime.ErrInvalidLimit},
		"no rule":      {runtime.Limit{}, time.Second, runtime.ErrInvalidLimit},
		"a broken key": {keyless(&rule), time.Second, runtime.ErrInvalidKey},
	} {
		wantError(t, name, limiter.Hold(t.Context(), c.limit, c.d), c.want)
	}
	wantError(t, "a broken store", runtime.New(broken(), quiet).Hold(t.Context(), fine, time.Second), errBroken)
}

// TestReleaseAndWait wants calls that wait for the end of a hold to go on soon after
// another replica has released it, and not to ask often before.
func TestReleaseAndWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx, store, asked := t.Context(), runtime.NewMemoryStore(), 0
		observer := observe.Observer{Decision: func(context.Context, observe.DecisionEvent) { asked++ }}
		one, other := runtime.New(store, quiet, observing(observer)), runtime.New(store, quiet)
		limit := (&runtime.Rule{Name: "r", Window: time.Second, Max: 10, Wait: time.Hour, Hold: true}).Limit(nil)
		ok(t, other.Hold(ctx, limit, 10*time.Minute))
		time.AfterFunc(time.Minute+100*time.Millisecond, func() {
			if err := other.Release(ctx, limit); err != nil {
				t.Error(err)
			}
		})
		if took := elapsed(func() { taken(t, one, limit) }); took > time.Minute+2*time.Second || asked > 1 {
			t.Errorf("after %v and %d decisions, want it admitted within 2 s of its release", took, asked)
		}
	})
}

// TestHoldAndWait wants calls that may wait to wait for the end of a hold, those of a
// queue in line, and others to fail at once.
func TestHoldAndWait(t *testing.T) {
	t.Parallel()
	for _, a := range []runtime.Algorithm{runtime.SlidingLog, runtime.TokenBucket, runtime.LeakyBucket} {
		synctest.Test(t, func(t *testing.T) {
			limiter := inMemory()
			limit := (&runtime.Rule{Name: "r", Window: time.Second, Max: 10, Algorithm: a, Wait: 5 * time.Second, Hold: true}).Limit(nil)
			ok(t, limiter.Hold(t.Context(), limit, 2*time.Second))
			equal(t, a.String()+": wait", elapsed(func() { taken(t, limiter, limit) }), 2*time.Second)
			ok(t, limiter.Hold(t.Context(), limit, 6*time.Second))
			equal(t, a.String()+": wait of a call that is refused", elapsed(func() {
				equal(t, a.String()+": retry after", blockedBy(t, limiter, limit).RetryAfter, 6*time.Second)
			}), 0)
		})
	}
}

// TestHoldOff wants what the results of a call ask for to be held for, within bounds,
// whatever has become of the caller, and what goes wrong to be reported.
func TestHoldOff(t *testing.T) {
	bubble(t, func(t *testing.T) {
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		var out lines
		var seen recorder[observe.FailureEvent]
		watched := []runtime.Option{out.Logger(), observing(observe.Observer{Failure: withContext(seen.add)})}
		limiter := runtime.New(runtime.NewMemoryStore(), watched...)
		for i, c := range []struct {
			window, d, want time.Duration
			period          rule.Period
		}{
			{time.Second, -1, 0, rule.NoPeriod},
			{time.Second, 0, 0, rule.NoPeriod},
			{time.Second, 1, time.Microsecond, rule.NoPeriod},
			{time.Second, time.Minute, time.Minute, rule.NoPeriod},
			{time.Second, 2 * time.Hour, time.Hour, rule.NoPeriod},
			{time.Second, runtime.Never, time.Hour, rule.NoPeriod},
			{24 * time.Hour, 2 * time.Hour, 2 * time.Hour, rule.NoPeriod},
			{24 * time.Hour, 200 * time.Hour, 24 * time.Hour, rule.NoPeriod},
			{0, 20 * time.Hour, 20 * time.Hour, rule.Day},
			{0, 6 * 24 * time.Hour, 6 * 24 * time.Hour, rule.Week},
			{0, 31 * 24 * time.Hour, 31 * 24 * time.Hour, rule.Month},
			{0, runtime.Never, 28 * time.Hour, rule.Day},
			{0, runtime.Never, rule.MaxWindow, rule.Year},
		} {
			r := &runtime.Rule{Name: fmt.Sprint("r", i), Window: c.window, Period: c.period, Max: 10, Hold: true}
			if c.period != rule.NoPeriod {
				r.Algorithm = runtime.FixedWindow
			}
			limit := r.Limit(nil)
			wrapper.HoldOff(gone, limiter, limit, c.d)
			d, err := limiter.Peek(context.Background(), limit)
			if d.RetryAfter != c.want || d.Blocked != (c.want > 0) {
				t.Errorf("%v: %+v, %v, want calls held back for %v", c.d, d, err, c.want)
			}
			wrapper.HoldOff(gone, limiter, limit, c.d) // within a second, and so without a line
			equal(t, fmt.Sprintf("%v: lines", c.d), strings.Count(out.String(), "rule="+r.Name+" "), min(1, int(c.want)))
		}
		wrapper.HoldOff(gone, limiter, runtime.Limit{}, time.Second)
		if n := strings.Count(out.String(), "bounded=true"); n != 5 || len(seen.all()) > 0 {
			t.Errorf("%d lines say that a hold is bounded, and there are %d failures\n%s", n, len(seen.all()), out.String())
		}
		wrapper.HoldOff(gone, runtime.New(broken(), watched...), (&runtime.Rule{Name: "r", Window: time.Second, Max: 1, Hold: true}).Limit(nil), time.Second)
		if failures := seen.all(); len(failures) != 1 || !failures[0].Holding || failures[0].Err == nil || strings.Count(out.String(), "by this process alone") != 1 {
			t.Errorf("a broken store: %+v, %s", failures, out.String())
		}
	})
}
