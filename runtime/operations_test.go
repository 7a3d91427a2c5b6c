package runtime_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// The limits of TakeEach are decided one after the other, each by itself and without a wait.
// An outcome can be refunded by itself.
func TestTakeEach(t *testing.T) {
	t.Parallel()
	limiter := inMemory()
	a := (&runtime.Rule{Name: "a", Prefix: "a:", Window: time.Hour, Max: 2, Wait: time.Hour}).Limit(key("k"))
	b := (&runtime.Rule{Name: "b", Prefix: "b:", Window: time.Hour, Max: 5}).Limit(key("k"))
	var limits []runtime.Limit
	steps := []struct {
		limit     runtime.Limit
		err       error
		remaining int64
	}{
		{a, nil, 1},
		{b.WithCost(-1), runtime.ErrInvalidLimit, 0},
		{a, nil, 0},
		{b.WithCost(6), runtime.ErrCostExceedsLimit, 0},
		{a, runtime.ErrLimited, 0},
		{b.WithCost(4), nil, 1},
		{b.WithCost(0), nil, 0},
		{b.WithCost(2), runtime.ErrLimited, 1},
		{b, nil, 0},
	}
	for _, step := range steps {
		limits = append(limits, step.limit)
	}
	outcomes := limiter.TakeEach(t.Context(), limits...)
	for i, o := range outcomes {
		if !errors.Is(o.Err, steps[i].err) || o.Allowed != (o.Err == nil) || o.Remaining != steps[i].remaining {
			t.Errorf("outcome %d: %+v, want %v and %d left", i, o, steps[i].err, steps[i].remaining)
		}
	}
	refunded(t, limiter, outcomes[5].Decision)
	wantLeft(t, limiter, b, 4)
	equal(t, "outcomes of no limits", len(limiter.TakeEach(t.Context())), 0)
}

// A call whose context has ended before is not decided, by no policy.
func TestContextCancelledBefore(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, policy := range []runtime.FailurePolicy{runtime.FailOpen, runtime.FailClosed, runtime.FailLocal} {
		limiter := inMemory(runtime.WithFailurePolicy(policy))
		d, err := limiter.Take(ctx, narrow.Limit(nil))
		if each := limiter.TakeEach(ctx, narrow.Limit(nil))[0].Err; err != context.Canceled || each != context.Canceled || d.Allowed {
			t.Errorf("%v: got %+v, %v, and each %v", policy, d, err, each)
		}
		wantLeft(t, limiter, narrow.Limit(nil), 1)
	}
}

// TestUsage wants usages of the limits that hold for a caller now, and of no others.
func TestUsage(t *testing.T) {
	t.Parallel()
	on := true
	limiter := inMemory(runtime.WithEnabled(func() bool { return on }), overridden(runtime.Overrides{Rules: map[string]rule.Override{
		"raised":  {Max: new(int64(40))},
		"removed": {Enabled: new(false)},
		"off":     {Max: new(int64(0))},
	}}))
	defer limiter.Close()
	declared := func(name string) *runtime.Rule {
		return &runtime.Rule{Name: name, Window: time.Hour, Max: 10}
	}
	shadow, bucket, blocks := declared("shadow"), declared("bucket"), declared("blocks")
	shadow.Mode = runtime.ModeShadow
	bucket.Algorithm, bucket.Burst = runtime.TokenBucket, 5
	blocks.Block, blocks.Max = time.Minute, 1
	passing(t, limiter, blocks.Limit(key("k")), 2)
	var limits []runtime.Limit
	for _, r := range []*runtime.Rule{declared("plain"), declared("raised"), declared("removed"), declared("off"), shadow, bucket, blocks} {
		limits = append(limits, r.Limit(key("k")))
	}
	usages, err := limiter.Usage(context.Background(), limits...)
	ok(t, err)
	soon := cmp.Comparer(func(a, b time.Duration) bool { return (a - b).Abs() < time.Minute })
	want := []runtime.Usage{
		{Rule: "plain", Window: time.Hour, Limit: 10, Max: 10, Remaining: 10},
		{Rule: "raised", Window: time.Hour, Limit: 40, Max: 40, Remaining: 40},
		{Rule: "off", Window: time.Hour, RetryAfter: runtime.Never},
		{Rule: "shadow", Mode: runtime.ModeShadow, Window: time.Hour, Limit: 10, Max: 10, Remaining: 10},
		{Rule: "bucket", Algorithm: runtime.TokenBucket, Window: time.Hour, Limit: 5, Max: 10, Remaining: 5},
		{Rule: "blocks", Window: time.Hour, Limit: 1, Max: 1, RetryAfter: time.Hour, ResetAfter: time.Hour, Blocked: true},
	}
	same(t, "usages", want, usages, soon)

	if usages, err := limiter.Usage(runtime.WithoutLimits(context.Background()), limits...); err != nil || len(usages) != 0 {
		t.Errorf("an exempt context: got %+v, %v", usages, err)
	}
	on = false
	if usages, err := limiter.Usage(context.Background(), limits...); err != nil || len(usages) != 0 {
		t.Errorf("switched off: got %+v, %v", usages, err)
	}
}

// TestPastOfAll wants what is kept of a key that an override admits nothing of, that has a
// lease, and in shadow mode; and nothing of rules that keep none.
func TestPastOfAll(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, time.November, 25, 12, 0, 0, 0, time.UTC)
	store := runtime.NewMemoryStore(runtime.WithClock(func() time.Time { return now }))
	before, limiter := runtime.New(store, quiet), runtime.New(store, quiet, overridden(runtime.Overrides{Rules: map[string]rule.Override{
		"keys": {Keys: map[string]rule.KeyOverride{"k": {Max: new(int64(0))}}},
	}}))
	defer before.Close()
	defer limiter.Close()
	declared := func(name string, keep uint8) *runtime.Rule {
		return &runtime.Rule{Name: name, Algorithm: runtime.FixedWindow, Period: rule.Week, Keep: keep, Max: 10}
	}
	shadow, leased := declared("shadow", 3), declared("leased", 1)
	shadow.Mode, leased.Lease = runtime.ModeShadow, time.Second
	rules := []*runtime.Rule{declared("plain", 2), declared("keys", 2), shadow, leased, declared("none", 0)}
	var limits []runtime.Limit
	for i, r := range rules {
		limits = append(limits, r.Limit(key("k")))
		taken(t, before, limits[i].WithCost(int64(i+1)))
	}
	now = now.AddDate(0, 0, 7)
	usages, err := limiter.Usage(context.Background(), limits...)
	ok(t, err)
	if len(usages) != len(rules) {
		t.Fatalf("%+v", usages)
	}
	for i, u := range usages {
		if len(u.Past) != int(rules[i].Keep) || len(u.Past) > 0 && u.Past[0].Used != int64(i+1) {
			t.Errorf("%s: %+v", u.Rule, u)
		}
	}
	if u := usages[1]; u.RetryAfter != runtime.Never || u.Remaining != 0 || u.Limit != 0 || u.ResetAfter <= 0 {
		t.Errorf("with a max of 0: %+v", u)
	}
	if week := usages[0].Past[0]; week.Start.Format(time.RFC3339) != "2026-11-23T00:00:00Z" || week.End.Format(time.RFC3339) != "2026-11-30T00:00:00Z" {
		t.Errorf("%+v", week)
	}
}

// TestUsageFails wants an error where nobody can say what is left.
func TestUsageFails(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	limit := wide.Limit(key("k"))
	for _, test := range []struct {
		limiter *runtime.Limiter
		ctx     context.Context
		limit   runtime.Limit
		want    error
	}{
		{inMemory(), context.Background(), keyless(wide), runtime.ErrInvalidKey},
		{inMemory(), context.Background(), limit.WithMax(-1), runtime.ErrInvalidLimit},
		{inMemory(), ctx, limit, context.Canceled},
		{runtime.New(nil, quiet), context.Background(), limit, runtime.ErrUnavailable},
	} {
		if usages, err := test.limiter.Usage(test.ctx, limit, test.limit); usages != nil || !errors.Is(err, test.want) {
			t.Errorf("got %+v, %v, want %v", usages, err, test.want)
		}
	}
}

// A peek knows of the lease.
func TestLeasePeek(t *testing.T) {
	t.Parallel()
	testLease(t, nil, func(l *leaseTest) {
		l.fill()
		units, greedy := l.units(), runtime.New(l.store.memory, quiet)
		for range l.rule.Max { // the rest of the limit goes to somebody else
			_, _ = greedy.Take(l.Context(), l.limit)
		}
		if d, err := l.limiter.Peek(l.Context(), l.limit); err != nil || !d.Allowed || d.RetryAfter != 0 {
			l.Errorf("of a limit of which only the lease is left: got %+v, %v", d, err)
		}
		if d, err := l.limiter.Peek(l.Context(), l.limit.WithCost(units+1)); err != nil || d.Allowed || d.RetryAfter <= 0 {
			l.Errorf("at more than the lease: got %+v, %v", d, err)
		}
	})
}

// TestRules registers rules before their first call and reads what holds for them: as declared,
// under overrides, by an adaptive factor and with limits switched off.
func TestRules(t *testing.T) {
	bubble(t, func(t *testing.T) {
		plain := &runtime.Rule{Name: "b", Window: time.Second, Max: 10}
		twin := &runtime.Rule{Name: "b", Source: "z", Prefix: "twin", Window: time.Second, Max: 10}
		adaptive := &runtime.Rule{Name: "a", Window: time.Minute, Max: 100, Adaptive: always(0.5)}
		var attached *runtime.Limiter
		limiter, board := following(t, time.Second, observing(observe.Observer{Attach: func(l observe.Limiter) { attached = l.(*runtime.Limiter) }}))
		equal(t, "the observer's limiter", attached, limiter)
		limiter.Register(plain, nil, adaptive)
		limiter.Register(twin, plain)

		state := func(r *runtime.Rule, change func(*observe.RuleState)) observe.RuleState {
			s := observe.RuleState{Rule: r, Enabled: true, Max: r.Max, Window: r.Window, Factor: 1}
			change(&s)
			return s
		}
		asDeclared := func(*observe.RuleState) {}
		halved := func(s *observe.RuleState) { s.Max, s.Factor, s.Called = 50, 0.5, true }
		check := func(what string, ofAdaptive, ofOthers func(*observe.RuleState)) {
			t.Helper()
			want := []observe.RuleState{state(adaptive, ofAdaptive), state(plain, ofOthers), state(twin, ofOthers)}
			same(t, what, want, limiter.Rules(), cmp.Comparer(func(a, b *runtime.Rule) bool { return a == b }))
		}
		check("as declared", asDeclared, asDeclared)
		taken(t, limiter, adaptive.Limit(nil))
		synctest.Wait()
		check("with a factor", halved, asDeclared)
		board.put(runtime.Overrides{Rules: map[string]rule.Override{
			"a": {Max: new(int64(40)), Mode: new(runtime.ModeShadow)},
			"b": {Keys: keys{"x": maximum(1), "y*": {Enabled: new(false)}, "z": maximum(1)}},
		}})
		check("overridden", func(s *observe.RuleState) {
			s.Factor, s.Max, s.Mode, s.Overridden, s.Called = 0.5, 20, runtime.ModeShadow, true, true
		}, func(s *observe.RuleState) { s.Keys = 3 })
		board.put(runtime.Overrides{Rules: map[string]rule.Override{"b": {Enabled: new(false)}}})
		check("switched off by an override", halved, func(s *observe.RuleState) { s.Enabled, s.Overridden = false, true })
		board.put(runtime.Overrides{Enabled: new(false)})
		check("all limits off", func(s *observe.RuleState) { halved(s); s.Enabled = false }, func(s *observe.RuleState) { s.Enabled = false })
		// An override that fits no registered rule is refused when it is read.
		board.put(runtime.Overrides{Rules: map[string]rule.Override{"b": {Max: new(int64(7))}}})
		board.put(runtime.Overrides{Rules: map[string]rule.Override{"b": {Max: new(int64(rule.MaxLog + 1))}}})
		check("after one that does not fit", halved, func(s *observe.RuleState) { s.Max, s.Overridden = 7, true })
	})
}
