package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

func TestTakeEach(t *testing.T) {
	t.Parallel()
	limiter := inMemory()
	a := &runtime.Rule{Name: "a", Prefix: "a:", Window: time.Hour, Max: 2, Wait: time.Hour}
	b := &runtime.Rule{Name: "b", Prefix: "b:", Window: time.Hour, Max: 5}
	outcomes := limiter.TakeEach(t.Context(),
		a.Limit(key("k")),
		b.Limit(key("k")).WithCost(-1), // fails alone
		a.Limit(key("k")),
		b.Limit(key("k")).WithCost(6), // never
		a.Limit(key("k")),             // one too many, and does not wait
		b.Limit(key("k")).WithCost(4),
		a.Limit(key("l")),
		b.Limit(key("k")).WithCost(0),
		b.Limit(key("k")).WithCost(2),
		b.Limit(key("k")),
	)
	var got []string
	for _, o := range outcomes {
		if (o.Err == nil) != o.Allowed {
			t.Errorf("allowed %v and error %v", o.Allowed, o.Err)
		}
		switch {
		case errors.Is(o.Err, runtime.ErrCostExceedsLimit):
			got = append(got, "never")
		case errors.Is(o.Err, runtime.ErrLimited):
			got = append(got, "limited")
		case errors.Is(o.Err, runtime.ErrInvalidLimit):
			got = append(got, "invalid")
		default:
			got = append(got, fmt.Sprintf("%s%d", o.Rule, o.Remaining))
		}
	}
	want := []string{"a1", "invalid", "a0", "never", "limited", "b1", "a1", "0", "limited", "b0"}
	same(t, "outcomes", want, got)
	// An outcome can be refunded by itself.
	refunded(t, limiter, outcomes[5].Decision)
	wantLeft(t, limiter, b.Limit(key("k")), 4)
	if got := limiter.TakeEach(t.Context()); len(got) != 0 {
		t.Errorf("no limits: got %v", got)
	}
}

func TestContextCancelledBefore(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, policy := range []runtime.FailurePolicy{runtime.FailOpen, runtime.FailClosed, runtime.FailLocal} {
		limiter := inMemory(runtime.WithFailurePolicy(policy))
		limit := (&runtime.Rule{Name: "r", Window: time.Hour, Max: 1}).Limit(nil)
		if d, err := limiter.Take(ctx, limit); err != context.Canceled || d.Allowed {
			t.Errorf("%v: got %+v, %v", policy, d, err)
		}
		if o := limiter.TakeEach(ctx, limit)[0]; o.Err != context.Canceled {
			t.Errorf("%v: take each: got %+v", policy, o)
		}
		wantLeft(t, limiter, limit, 1)
	}
}

// admittedOf returns how many of the calls of 64 goroutines the limiters admit
// between them.
func admittedOf(t *testing.T, limit runtime.Limit, limiters ...*runtime.Limiter) int64 {
	t.Helper()
	var admitted atomic.Int64
	concurrently(64, func(i int) {
		for range 5 {
			_, err := limiters[i%len(limiters)].Take(context.Background(), limit)
			switch {
			case err == nil:
				admitted.Add(1)
			case !errors.Is(err, runtime.ErrLimited):
				t.Error(err)
			}
		}
	})
	return admitted.Load()
}

// TestUsage wants usages of the limits that hold for a caller now, and of no others.
func TestUsage(t *testing.T) {
	t.Parallel()
	on := true
	limiter := inMemory(runtime.WithEnabled(func() bool { return on }), overridden(runtime.Overrides{Rules: map[string]runtime.Override{
		"raised":  {Max: new(int64(40))},
		"removed": {Enabled: new(false)},
		"off":     {Max: new(int64(0))},
	}}))
	defer limiter.Close()
	rule := func(name string) *runtime.Rule {
		return &runtime.Rule{Name: name, Window: time.Hour, Max: 10}
	}
	shadow, bucket, blocks := rule("shadow"), rule("bucket"), rule("blocks")
	shadow.Mode = runtime.ModeShadow
	bucket.Algorithm, bucket.Burst = runtime.TokenBucket, 5
	blocks.Block, blocks.Max = time.Minute, 1
	passing(t, limiter, blocks.Limit(key("k")), 2)
	var limits []runtime.Limit
	for _, r := range []*runtime.Rule{rule("plain"), rule("raised"), rule("removed"), rule("off"), shadow, bucket, blocks} {
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
		{inMemory(), context.Background(), wide.Limit(runtime.NewKey().AddInvalid("#user is nil")), runtime.ErrInvalidKey},
		{inMemory(), context.Background(), limit.WithMax(-1), runtime.ErrInvalidLimit},
		{inMemory(), ctx, limit, context.Canceled},
		{runtime.New(nil, quiet), context.Background(), limit, runtime.ErrUnavailable},
	} {
		if usages, err := test.limiter.Usage(test.ctx, limit, test.limit); usages != nil || !errors.Is(err, test.want) {
			t.Errorf("got %+v, %v, want %v", usages, err, test.want)
		}
	}
}

// TestUsageOneTrip wants one request for the usages of many limits.
func TestUsageOneTrip(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	count := counting(client)
	limiter := onRedis(client)
	limits := make([]runtime.Limit, 50)
	for i := range limits {
		limits[i] = wide.Limit(runtime.NewKey().AddInt(int64(i)))
	}
	usage := func() {
		usages, err := limiter.Usage(context.Background(), limits...)
		if ok(t, err); len(usages) != len(limits) {
			t.Fatalf("%d usages", len(usages))
		}
	}
	usage() // which loads the script
	count.sent()
	usage()
	if sent := count.sent(); len(sent) != 1 {
		t.Errorf("sent %v, want one script", sent)
	}
}

// TestRules registers rules before their first call and reads what holds for
// them: as declared, under overrides, by an adaptive factor and with limits
// switched off.
func TestRules(t *testing.T) {
	bubble(t, func(t *testing.T) {
		plain := &runtime.Rule{Name: "b", Window: time.Second, Max: 10}
		twin := &runtime.Rule{Name: "b", Source: "z", Prefix: "twin", Window: time.Second, Max: 10}
		adaptive := &runtime.Rule{Name: "a", Window: time.Minute, Max: 100, Adaptive: always(0.5)}
		var attached *runtime.Limiter
		limiter, board := following(t, time.Second, observing(runtime.Observer{Attach: func(l *runtime.Limiter) { attached = l }}))
		if attached != limiter {
			t.Fatal("the observer does not have its limiter")
		}
		limiter.Register(plain, nil, adaptive)
		limiter.Register(twin, plain)

		state := func(r *runtime.Rule, change func(*runtime.RuleState)) runtime.RuleState {
			s := runtime.RuleState{Rule: r, Enabled: true, Max: r.Max, Window: r.Window, Factor: 1}
			change(&s)
			return s
		}
		asDeclared := func(*runtime.RuleState) {}
		halved := func(s *runtime.RuleState) { s.Max, s.Factor = 50, 0.5 }
		check := func(what string, ofAdaptive, ofOthers func(*runtime.RuleState)) {
			t.Helper()
			want := []runtime.RuleState{state(adaptive, ofAdaptive), state(plain, ofOthers), state(twin, ofOthers)}
			same(t, what, want, limiter.Rules(), cmp.Comparer(func(a, b *runtime.Rule) bool { return a == b }))
		}
		check("as declared", asDeclared, asDeclared)
		taken(t, limiter, adaptive.Limit(nil))
		synctest.Wait()
		check("with a factor", halved, asDeclared)
		board.put(runtime.Overrides{Rules: map[string]runtime.Override{
			"a": {Max: new(int64(40)), Mode: new(runtime.ModeShadow)},
			"b": {Keys: keys{"x": maximum(1), "y*": {Enabled: new(false)}, "z": maximum(1)}},
		}})
		check("overridden", func(s *runtime.RuleState) {
			s.Factor, s.Max, s.Mode, s.Overridden = 0.5, 20, runtime.ModeShadow, true
		}, func(s *runtime.RuleState) { s.Keys = 3 })
		board.put(runtime.Overrides{Rules: map[string]runtime.Override{"b": {Enabled: new(false)}}})
		check("switched off by an override", halved, func(s *runtime.RuleState) { s.Enabled, s.Overridden = false, true })
		board.put(runtime.Overrides{Enabled: new(false)})
		check("all limits off", func(s *runtime.RuleState) { halved(s); s.Enabled = false }, func(s *runtime.RuleState) { s.Enabled = false })
		// An override that fits no registered rule is refused when it is read.
		board.put(runtime.Overrides{Rules: map[string]runtime.Override{"b": {Max: new(int64(7))}}})
		board.put(runtime.Overrides{Rules: map[string]runtime.Override{"b": {Max: new(int64(runtime.MaxLog + 1))}}})
		check("after one that does not fit", halved, func(s *runtime.RuleState) { s.Max, s.Overridden = 7, true })
	})
}
